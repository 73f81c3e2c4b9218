/// \file
/// The table of functions through which packetdrill (--so_filename) drives a TCP: which calls there
/// are and in which order. Written from the interface's description; the calls are those of POSIX
/// with the adapter's own pointer in front.
#pragma once

#include <poll.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <sys/types.h>
#include <sys/uio.h>

#include <cstddef>

namespace rnic::packetdrill {

struct InterfaceTable {
  void* self = nullptr;
  void (*free)(void*) = nullptr;

  // Sockets.
  int (*socket)(void*, int, int, int) = nullptr;
  int (*bind)(void*, int, const sockaddr*, socklen_t) = nullptr;
  int (*listen)(void*, int, int) = nullptr;
  int (*accept)(void*, int, sockaddr*, socklen_t*) = nullptr;
  int (*connect)(void*, int, const sockaddr*, socklen_t) = nullptr;
  ssize_t (*read)(void*, int, void*, size_t) = nullptr;
  ssize_t (*readv)(void*, int, const iovec*, int) = nullptr;
  ssize_t (*recv)(void*, int, void*, size_t, int) = nullptr;
  ssize_t (*recvfrom)(void*, int, void*, size_t, int, sockaddr*, socklen_t*) = nullptr;
  ssize_t (*recvmsg)(void*, int, msghdr*, int) = nullptr;
  ssize_t (*write)(void*, int, const void*, size_t) = nullptr;
  ssize_t (*writev)(void*, int, const iovec*, int) = nullptr;
  ssize_t (*send)(void*, int, const void*, size_t, int) = nullptr;
  ssize_t (*sendto)(void*, int, const void*, size_t, int, const sockaddr*, socklen_t) = nullptr;
  ssize_t (*sendmsg)(void*, int, const msghdr*, int) = nullptr;
  int (*fcntl)(void*, int, int, ...) = nullptr;
  int (*ioctl)(void*, int, unsigned long, ...) = nullptr;
  int (*close)(void*, int) = nullptr;
  int (*shutdown)(void*, int, int) = nullptr;
  int (*getsockopt)(void*, int, int, int, void*, socklen_t*) = nullptr;
  int (*setsockopt)(void*, int, int, int, const void*, socklen_t) = nullptr;
  int (*poll)(void*, pollfd*, nfds_t, int) = nullptr;

  // The network: one IP packet into the TCP; the next one out of it with its time in microseconds.
  int (*netdev_send)(void*, const void*, size_t) = nullptr;
  int (*netdev_receive)(void*, void*, size_t*, long long*) = nullptr;

  // The clock.
  int (*usleep)(void*, useconds_t) = nullptr;
  int (*gettimeofday)(void*, timeval*, struct timezone*) = nullptr;

  // Not offered: they fail with ENOSYS.
  int (*epoll_create)(void*, int) = nullptr;
  int (*epoll_ctl)(void*, int, int, int, epoll_event*) = nullptr;
  int (*epoll_wait)(void*, int, epoll_event*, int, int) = nullptr;
  int (*pipe)(void*, int*) = nullptr;
  int (*splice)(void*, int, loff_t*, int, loff_t*, size_t, unsigned) = nullptr;
};

}  // namespace rnic::packetdrill

/// The one symbol that packetdrill looks up. \param flags "key=value,..." of --so_flags; nullptr:
/// none.
extern "C" void packetdrill_interface_init(const char* flags,
                                           rnic::packetdrill::InterfaceTable* table);

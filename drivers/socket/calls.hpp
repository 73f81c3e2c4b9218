/// \file
/// System: the boundary to the operating system, with every call that this driver makes.
#pragma once

#include <sys/epoll.h>
#include <sys/socket.h>

#include <cstddef>
#include <cstdint>

namespace rnic::socket {

/// The system's calls under their own names, with their own arguments and results: a negative
/// result stands for an error, which errno then names. An implementation sets exactly the values of
/// errno that the manual of the call names.
class System {
 public:
  virtual int socket(int family, int type, int protocol) = 0;
  virtual int close(int descriptor) = 0;
  virtual int bind(int descriptor, const sockaddr* address, socklen_t size) = 0;
  virtual int listen(int descriptor, int backlog) = 0;
  virtual int accept4(int descriptor, sockaddr* address, socklen_t* size, int flags) = 0;
  virtual int connect(int descriptor, const sockaddr* address, socklen_t size) = 0;
  virtual int shutdown(int descriptor, int how) = 0;
  virtual int getsockname(int descriptor, sockaddr* address, socklen_t* size) = 0;
  virtual int getsockopt(int descriptor, int level, int name, void* value, socklen_t* size) = 0;
  virtual int setsockopt(int descriptor, int level, int name, const void* value,
                         socklen_t size) = 0;
  /// ioctl() with SIOCOUTQ. \param octets not yet acknowledged, the FIN included
  virtual int unacknowledged(int descriptor, int& octets) = 0;
  virtual ssize_t recv(int descriptor, void* buffer, size_t size, int flags) = 0;
  virtual int sendmmsg(int descriptor, mmsghdr* messages, uint32_t count, int flags) = 0;
  virtual int epoll_create1(int flags) = 0;
  virtual int epoll_ctl(int poller, int operation, int descriptor, epoll_event* event) = 0;
  virtual int epoll_wait(int poller, epoll_event* events, int count, int timeout) = 0;

 protected:
  // It is not virtual, so that nothing is done to own_system() at the end of the process, where
  // threads may still call it.
  ~System() = default;
};

/// The system that this process runs on; any thread may call it. Its descriptors are in the
/// process's table, and its close() closes only descriptors of that table
/// (process/descriptor_table.hpp).
[[nodiscard]] System& own_system();

}  // namespace rnic::socket

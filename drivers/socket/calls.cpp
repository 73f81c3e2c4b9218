#include "socket/calls.hpp"

#include <linux/sockios.h>
#include <sys/ioctl.h>

#include <type_traits>

#include "process/descriptor_table.hpp"

namespace rnic::socket {

namespace {

class OwnSystem final : public System {
 public:
  int socket(int family, int type, int protocol) override {
    return process::descriptors().open([&] { return ::socket(family, type, protocol); });
  }
  int close(int descriptor) override { return process::descriptors().close(descriptor); }
  int bind(int descriptor, const sockaddr* address, socklen_t size) override {
    return ::bind(descriptor, address, size);
  }
  int listen(int descriptor, int backlog) override { return ::listen(descriptor, backlog); }
  int accept4(int descriptor, sockaddr* address, socklen_t* size, int flags) override {
    return process::descriptors().open([&] { return ::accept4(descriptor, address, size, flags); });
  }
  int connect(int descriptor, const sockaddr* address, socklen_t size) override {
    return ::connect(descriptor, address, size);
  }
  int shutdown(int descriptor, int how) override { return ::shutdown(descriptor, how); }
  int getsockname(int descriptor, sockaddr* address, socklen_t* size) override {
    return ::getsockname(descriptor, address, size);
  }
  int getsockopt(int descriptor, int level, int name, void* value, socklen_t* size) override {
    return ::getsockopt(descriptor, level, name, value, size);
  }
  int setsockopt(int descriptor, int level, int name, const void* value, socklen_t size) override {
    return ::setsockopt(descriptor, level, name, value, size);
  }
  int unacknowledged(int descriptor, int& octets) override {
    return ::ioctl(descriptor, SIOCOUTQ, &octets);
  }
  ssize_t recv(int descriptor, void* buffer, size_t size, int flags) override {
    return ::recv(descriptor, buffer, size, flags);
  }
  int sendmmsg(int descriptor, mmsghdr* messages, uint32_t count, int flags) override {
    return ::sendmmsg(descriptor, messages, count, flags);
  }
  int epoll_create1(int flags) override {
    return process::descriptors().open([flags] { return ::epoll_create1(flags); });
  }
  int epoll_ctl(int poller, int operation, int descriptor, epoll_event* event) override {
    return ::epoll_ctl(poller, operation, descriptor, event);
  }
  int epoll_wait(int poller, epoll_event* events, int count, int timeout) override {
    return ::epoll_wait(poller, events, count, timeout);
  }
};

}  // namespace

System& own_system() {
  static constinit OwnSystem system;
  static_assert(std::is_trivially_destructible_v<OwnSystem>);
  return system;
}

}  // namespace rnic::socket

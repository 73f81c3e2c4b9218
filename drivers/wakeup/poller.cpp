#include "wakeup/poller.hpp"

#include <sys/epoll.h>

namespace rnic::wakeup {

Result<Poller> Poller::open() {
  auto descriptor = Descriptor::open([] { return epoll_create1(EPOLL_CLOEXEC); });
  if (!descriptor.is_open()) return no_descriptor("an epoll");
  return Poller(std::move(descriptor));
}

Status Poller::add(int descriptor) const {
  if (watch(descriptor)) return {};
  return no_descriptor("a watch of an epoll");
}

bool Poller::watch(int descriptor) const noexcept {
  epoll_event event{};
  event.events = EPOLLIN;
  event.data.fd = descriptor;
  return epoll_ctl(fd(), EPOLL_CTL_ADD, descriptor, &event) == 0;
}

}  // namespace rnic::wakeup

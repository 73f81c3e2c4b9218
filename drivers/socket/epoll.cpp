#include "socket/epoll.hpp"

#include <algorithm>
#include <cerrno>

namespace rnic::socket {

Result<Epoll> Epoll::open(System& system) {
  Descriptor descriptor(system.epoll_create1(EPOLL_CLOEXEC), system);
  if (!descriptor.open()) return tl::unexpected(system_error("epoll", errno));
  return Epoll(system, std::move(descriptor));
}

bool Epoll::watch(int operation, int descriptor, uint32_t events, uint64_t word) const {
  epoll_event event{};
  event.events = events;
  event.data.u64 = word;
  return system_->epoll_ctl(fd(), operation, descriptor, &event) == 0;
}

bool Epoll::wake_by(int descriptor) const {
  return watch(EPOLL_CTL_ADD, descriptor, EPOLLIN, kOthers);
}

void Epoll::sleep() {
  if (!has_events()) keep(system_->epoll_wait(fd(), events_.data(), kEventsAtOnce, -1));
}

std::span<const epoll_event> Epoll::take() {
  if (!has_events()) keep(system_->epoll_wait(fd(), events_.data(), kEventsAtOnce, 0));
  return {events_.data(), std::exchange(count_, 0)};
}

/// \param told how many events the system has put into events_; negative: an error, and none
void Epoll::keep(int told) {
  epoll_event* const end = events_.data() + std::max(told, 0);
  const auto is_others = [](const epoll_event& event) { return event.data.u64 == kOthers; };
  count_ = static_cast<uint32_t>(std::remove_if(events_.data(), end, is_others) - events_.data());
}

}  // namespace rnic::socket

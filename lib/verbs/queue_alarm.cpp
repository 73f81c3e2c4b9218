#include "verbs/queue_alarm.hpp"

#include <sys/epoll.h>
#include <unistd.h>

#include <cerrno>
#include <system_error>

namespace rnic::verbs {

namespace {

Error lacks_descriptors() {
  return {ErrorCode::ResourceExhausted, "an epoll: " + std::generic_category().message(errno) +
                                            "; raise the limits of descriptors (ulimit -n) and of "
                                            "watches (fs.epoll.max_user_watches)"};
}

}  // namespace

Status add_to_poller(int poller, int descriptor) {
  epoll_event event{};
  event.events = EPOLLIN;
  event.data.fd = descriptor;
  if (epoll_ctl(poller, EPOLL_CTL_ADD, descriptor, &event) == 0) return {};
  return tl::unexpected(lacks_descriptors());
}

Result<int> poller_of(std::initializer_list<int> descriptors) {
  const int poller = epoll_create1(EPOLL_CLOEXEC);
  if (poller < 0) return tl::unexpected(lacks_descriptors());
  for (const int descriptor : descriptors) {
    if (auto added = add_to_poller(poller, descriptor); !added) {
      close(poller);
      return tl::unexpected(added.error());
    }
  }
  return poller;
}

Result<std::unique_ptr<QueueAlarm>> QueueAlarm::open(std::optional<int> driver) {
  auto signal = wakeup::EventSignal::open();
  if (!signal) return tl::unexpected(signal.error());
  int poller = -1;
  if (driver) {
    auto both = poller_of({signal->fd(), *driver});
    if (!both) return tl::unexpected(both.error());
    poller = *both;
  }
  return std::unique_ptr<QueueAlarm>(new QueueAlarm(std::move(*signal), poller));
}

QueueAlarm::~QueueAlarm() {
  if (poller_ >= 0) close(poller_);
}

}  // namespace rnic::verbs

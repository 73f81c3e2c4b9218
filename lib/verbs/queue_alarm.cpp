#include "verbs/queue_alarm.hpp"

namespace rnic::verbs {

Result<std::unique_ptr<QueueAlarm>> QueueAlarm::open(std::optional<int> driver) {
  auto signal = wakeup::EventSignal::open();
  if (!signal) return tl::unexpected(signal.error());
  std::optional<wakeup::Poller> both;
  if (driver) {
    auto poller = wakeup::Poller::open();
    if (!poller) return tl::unexpected(poller.error());
    for (const int descriptor : {signal->fd(), *driver}) {
      if (auto added = poller->add(descriptor); !added) return tl::unexpected(added.error());
    }
    both = std::move(*poller);
  }
  return std::unique_ptr<QueueAlarm>(new QueueAlarm(std::move(*signal), std::move(both)));
}

}  // namespace rnic::verbs

#include "device/receive_waits.hpp"

#include "device/queue_pair.hpp"

namespace rnic::device {

void ReceiveWaits::on_timers(base::Now now) {
  if (!timers_.due(now)) return;
  timers_.expire(
      now, [now](base::TimerNode& node) { static_cast<QueuePair*>(node.owner)->resume(now); });
}

}  // namespace rnic::device

#include "device/stalled_responders.hpp"

#include "base/log.hpp"
#include "device/queue_pair.hpp"

namespace rnic::device {

void StalledResponders::begin(base::TimerNode& node, base::Now until, uint32_t qp) {
  if (!node.armed()) {
    base::log(base::LogLevel::Warning, "device", [&] {
      return device_ + " qp " + std::to_string(qp) +
             ": done: the responder is stalled, a Read or an atomic of the peer is answered later";
    });
  }
  timers_.arm(node, until);
}

void StalledResponders::on_timers(base::Now now) {
  if (!timers_.due(now)) return;
  timers_.expire(now, [now](base::TimerNode& node) {
    static_cast<QueuePair*>(node.owner)->answer_stalled(now);
  });
}

}  // namespace rnic::device

#include "dpdk/wire_alarm.hpp"

#include <utility>

namespace rnic::dpdk {

Result<std::unique_ptr<WireAlarm>> WireAlarm::make(const FrameRing& ring, bool one_thread) {
  auto signal = wakeup::EventSignal::open();
  if (!signal) return tl::unexpected(signal.error());
  return std::unique_ptr<WireAlarm>(new WireAlarm(ring, one_thread, std::move(*signal)));
}

int WireAlarm::arm() {
  bell_.arm();
  if (!ring_.empty()) bell_.ring_unfenced();
  return bell_.signal().fd();
}

}  // namespace rnic::dpdk

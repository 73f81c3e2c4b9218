#include "dpdk/wire_alarm.hpp"

#include <rte_ring.h>

#include <utility>

namespace rnic::dpdk {

Result<std::unique_ptr<WireAlarm>> WireAlarm::make(const rte_ring* ring, bool one_thread) {
  auto signal = wakeup::EventSignal::open();
  if (!signal) return tl::unexpected(signal.error());
  return std::unique_ptr<WireAlarm>(new WireAlarm(ring, one_thread, std::move(*signal)));
}

int WireAlarm::arm() {
  bell_.arm();
  if (rte_ring_empty(ring_) == 0) bell_.ring_unfenced();
  return bell_.signal().fd();
}

}  // namespace rnic::dpdk

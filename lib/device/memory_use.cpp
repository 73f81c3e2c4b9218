#include "device/memory_use.hpp"

#include <algorithm>

#include "device/device.hpp"
#include "net/neighbours.hpp"
#include "tcp/ring_pool.hpp"

namespace rnic::device {

base::MemoryUses memory_use(const DeviceConfig& config, bool on_port) {
  const Limits& limits = config.limits;
  base::MemoryUses uses{
      {"limits.max_regions", mem::StagTable::octets_for(limits.max_regions)},
      {"limits.hold_octets", framing::hold_store_octets(limits.hold_octets)},
      {"limits.max_packed", tuf::pack_store_octets(limits.max_packed)},
      {"limits.max_connections", ConnectionTable::octets_for(limits)},
      {"limits.max_starting",
       2 * llp::Admission::octets_for(std::min(limits.max_starting, limits.max_connections))},
      {"limits.max_events", EventQueue::octets_for(limits.max_events)},
  };
  if (!on_port) return uses;
  const uint64_t rings = limits.stream_octets / std::max(limits.stream_buffer, 1u);
  const base::MemoryUses of_port{
      {"limits.max_streams", StreamTable::socket_octets_for(limits.max_streams)},
      {"limits.stream_octets", tcp::RingPool::octets_for(limits.stream_buffer, rings)},
      {"limits.max_framed_streams", FramedTable::socket_octets_for(limits.max_framed_streams)},
      {"limits.framed_buffer",
       tcp::RingPool::octets_for(limits.framed_buffer, uint64_t{2} * limits.max_framed_streams)},
      {"net.neighbours", net::Neighbours::octets_for(config.net.neighbours)},
  };
  uses.insert(uses.end(), of_port.begin(), of_port.end());
  const base::MemoryUses of_tcp = tcp::Stack::memory_use(config.tcp);
  uses.insert(uses.end(), of_tcp.begin(), of_tcp.end());
  return uses;
}

}  // namespace rnic::device

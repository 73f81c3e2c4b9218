#include "dpdk/ring_port.hpp"

#include <utility>

#include "dpdk/hand_over.hpp"

namespace rnic::dpdk {

RingPort::RingPort(port::PortInfo info, const RingEnd& end, std::shared_ptr<void> wire)
    : wire_(std::move(wire)), end_(end), info_(std::move(info)) {}

uint32_t RingPort::rx_burst(std::span<port::Packet> out, base::Now) {
  uint32_t count = 0;
  end_.from_peer->consume(out.size(), [&](rte_mbuf* mbuf, const auto&) {
    take_over(mbuf);
    expect(mbuf);
    out[count++].buffer = to_buffer(mbuf);
  });
  // Behind all hints, since what is read here waits for the mbuf.
  for (port::Packet& packet : out.first(count)) {
    show(packet, to_mbuf(packet.buffer));
    packet.ip_checksum = packet.l4_checksum = port::Checksum::Good;
    counters_.rx_octets += packet.length;
  }
  counters_.rx_frames += count;
  return count;
}

uint32_t RingPort::tx_burst(std::span<port::Packet> packets, base::Now now) {
  if (packets.empty()) return 0;
  uint32_t total = 0;
  for (const port::Packet& packet : packets) {
    rte_mbuf* const mbuf = to_mbuf(packet.buffer);
    set_octets(mbuf, packet);
    hand_over(mbuf);
    if (!end_.to_peer->push(mbuf)) break;
    counters_.tx_octets += packet.length;
    ++total;
  }
  counters_.tx_frames += total;
  counters_.tx_refused += packets.size() - total;
  if (total != 0) end_.wakes_peer->sent();
  tell(watch_.look(total < packets.size(), total != 0, now), info_.name, counters_);
  return total;
}

}  // namespace rnic::dpdk

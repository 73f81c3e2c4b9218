#include "dpdk/ring_port.hpp"

#include <utility>

#include "dpdk/hand_over.hpp"
#include "dpdk/mbuf_pool.hpp"

namespace rnic::dpdk {

RingPort::RingPort(port::PortInfo info, const RingEnd& end, std::shared_ptr<void> wire)
    : wire_(std::move(wire)), end_(end), info_(std::move(info)) {}

namespace {

/// Notes the frames of a burst one by one. What is read of a frame that came by pointer is fetched
/// meanwhile.
class Burst {
 public:
  explicit Burst(std::span<port::Packet> out) : next_(out.data()) {}

  void operator()(const port::Packet& carried) { *next_++ = carried; }
  void operator()(rte_mbuf* mbuf) {
    take_over(mbuf);
    expect(mbuf);
    next_->data = nullptr;
    next_++->buffer = to_buffer(mbuf);
  }

 private:
  port::Packet* next_;
};

}  // namespace

uint32_t RingPort::rx_burst(std::span<port::Packet> out, base::Now) {
  const size_t count = end_.from_peer->consume(out.size(), Burst(out));
  // Behind all hints, since what is read here waits for the mbuf.
  for (port::Packet& packet : out.first(count)) {
    if (packet.data == nullptr) show(packet, to_mbuf(packet.buffer));
    packet.ip_checksum = packet.l4_checksum = port::Checksum::Good;
    counters_.rx_octets += packet.length;
  }
  counters_.rx_frames += count;
  return static_cast<uint32_t>(count);
}

bool RingPort::send(const port::Packet& packet) {
  rte_mbuf* mbuf = to_mbuf(packet.buffer);
  if (end_.to_peer->carry(packet)) {
    free_mbufs(&mbuf, 1);
    return true;
  }
  set_octets(mbuf, packet);
  hand_over(mbuf);
  return end_.to_peer->push(mbuf);
}

uint32_t RingPort::tx_burst(std::span<port::Packet> packets, base::Now now) {
  if (packets.empty()) return 0;
  uint32_t total = 0;
  for (const port::Packet& packet : packets) {
    if (!send(packet)) break;
    counters_.tx_octets += packet.length;
    ++total;
  }
  counters_.tx_frames += total;
  counters_.tx_refused += packets.size() - total;
  if (total != 0) end_.wakes_peer->sent();
  tell(watch_.look(total < packets.size(), total != 0, now), info_.name, counters_);
  return total;
}

void RingPort::free(std::span<const port::Packet> packets) {
  size_t done = 0;
  for (size_t i = 0; i < packets.size(); ++i) {
    if (!end_.from_peer->release(packets[i].buffer)) continue;
    free_frames(packets.subspan(done, i - done));
    done = i + 1;
  }
  free_frames(packets.subspan(done));
}

}  // namespace rnic::dpdk

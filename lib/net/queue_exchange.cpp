#include "net/queue_exchange.hpp"

#include <algorithm>
#include <cstring>
#include <deque>

#include "base/check.hpp"
#include "net/ipv6_headers.hpp"
#include "wire/arp.hpp"
#include "wire/ether.hpp"
#include "wire/icmp.hpp"
#include "wire/ipv4.hpp"
#include "wire/ipv6.hpp"
#include "wire/tcp.hpp"

namespace rnic::net {

namespace {

bool is_error4(uint8_t type) {
  return type == wire::kIcmpUnreachable || type == wire::kIcmpSourceQuench ||
         type == wire::kIcmpTimeExceeded || type == wire::kIcmpParameterProblem;
}

bool ipv4_concerns_all(base::ByteView packet) {
  const std::optional<wire::Ipv4> ip = wire::parse_ipv4(packet);
  if (!ip) return false;
  if (ip->protocol == wire::kProtocolTcp) return ip->is_fragment();
  return ip->protocol == wire::kProtocolIcmp && !ip->is_fragment() &&
         ip->total_length > ip->header_length && is_error4(packet[ip->header_length]);
}

bool ipv6_concerns_all(base::ByteView octets) {
  const std::optional<wire::Ipv6> ip = wire::parse_ipv6(octets);
  if (!ip || ip->next_header == wire::kProtocolTcp) return false;
  const base::ByteView packet = octets.first(wire::kIpv6Header + ip->payload_length);
  const Ipv6Chain chain = walk_ipv6(packet, wire::kIpv6NextHeaderAt, wire::kIpv6Header);
  if (chain.result == Ipv6Chain::Result::Fragment) {
    return packet[chain.at] == wire::kProtocolTcp;
  }
  if (chain.result != Ipv6Chain::Result::Payload) return false;
  if (chain.protocol == wire::kProtocolTcp) return true;
  return chain.protocol == wire::kNextIcmpv6 && chain.at < packet.size() &&
         (packet[chain.at] < wire::kIcmpv6FirstInformational ||
          packet[chain.at] == wire::kIcmpv6NeighbourAdvertisement);
}

}  // namespace

bool concerns_all_queues(base::ByteView frame) {
  if (frame.size() < wire::kEtherHeader) return false;
  uint16_t type = base::load_be16(frame.data() + wire::kEtherTypeAt);
  uint32_t at = wire::kEtherHeader;
  if (type == wire::kEtherTypeVlan) {
    if (frame.size() < at + wire::kVlanTag) return false;
    type = base::load_be16(frame.data() + wire::kVlanTypeAt);
    at += wire::kVlanTag;
  }
  const base::ByteView packet = frame.subspan(at);
  switch (type) {
    case wire::kEtherTypeIpv4: return ipv4_concerns_all(packet);
    case wire::kEtherTypeIpv6: return ipv6_concerns_all(packet);
    case wire::kEtherTypeArp:
      return packet.size() >= wire::kArpPacket &&
             base::load_be16(packet.data() + wire::kArpOperationAt) == wire::kArpReply;
    default: return false;
  }
}

class QueueExchange::QueuePort final : public port::Port {
 public:
  QueuePort(port::Port& inner, uint32_t queues) : inner_(inner) {
    for (uint32_t i = 0; i < queues; ++i) from_.emplace_back(kWaiting);
  }

  void connect(std::vector<QueuePort*> others) { others_ = std::move(others); }

  [[nodiscard]] const port::PortInfo& info() const override { return inner_.info(); }
  [[nodiscard]] const port::PortCounters& counters() const override {
    counters_ = inner_.counters();
    counters_.rx_shared = shared_;
    counters_.rx_share_lost = share_lost_;
    return counters_;
  }

  uint32_t rx_burst(std::span<port::Packet> out, base::Now now) override {
    uint32_t n = 0;
    for (base::SpscRing<port::Packet>& ring : from_) {
      while (n < out.size() && ring.pop(out[n])) ++n;
    }
    const uint32_t fresh = inner_.rx_burst(out.subspan(n), now);
    for (const port::Packet& packet : out.subspan(n, fresh)) {
      if (concerns_all_queues(packet.view())) share(packet);
    }
    return n + fresh;
  }
  bool alloc(std::span<port::Packet> out) override { return inner_.alloc(out); }
  uint32_t tx_burst(std::span<port::Packet> packets, base::Now now) override {
    return inner_.tx_burst(packets, now);
  }
  void free(std::span<const port::Packet> packets) override { inner_.free(packets); }
  [[nodiscard]] base::Now next_deadline() const override {
    for (const base::SpscRing<port::Packet>& ring : from_) {
      if (!ring.empty()) return base::Now{};
    }
    return inner_.next_deadline();
  }
  std::optional<port::LinkState> link() override { return inner_.link(); }

  /// Frees the copies that were not fetched.
  void drain() {
    for (base::SpscRing<port::Packet>& ring : from_) {
      for (port::Packet packet; ring.pop(packet);) inner_.free({&packet, 1});
    }
  }

 private:
  void share(const port::Packet& packet) {
    for (QueuePort* other : others_) {
      port::Packet copy;
      if (!inner_.alloc({&copy, 1})) {
        ++share_lost_;
        continue;
      }
      const bool fits = packet.length <= copy.room;
      if (fits) {
        std::memcpy(copy.data, packet.data, packet.length);
        copy.length = packet.length;
        copy.ip_checksum = packet.ip_checksum;
        copy.l4_checksum = packet.l4_checksum;
      }
      if (fits && other->from_[info().spread.queue].push(copy)) {
        ++shared_;
      } else {
        ++share_lost_;
        inner_.free({&copy, 1});
      }
    }
  }

  port::Port& inner_;
  std::vector<QueuePort*> others_;
  // Indexed by the queue that fills the ring; rings do not move.
  std::deque<base::SpscRing<port::Packet>> from_;
  uint64_t shared_ = 0;
  uint64_t share_lost_ = 0;
  mutable port::PortCounters counters_;  // the inner port's and ours, put together by counters()
};

QueueExchange::QueueExchange(const std::vector<port::Port*>& queues) {
  const auto count = static_cast<uint32_t>(queues.size());
  for (uint32_t i = 0; i < count; ++i) {
    RNIC_CHECK(queues[i]->info().spread.queue == i && queues[i]->info().spread.queues == count);
    ports_.push_back(std::make_unique<QueuePort>(*queues[i], count));
  }
  for (const auto& port : ports_) {
    std::vector<QueuePort*> others;
    for (const auto& other : ports_) {
      if (other != port) others.push_back(other.get());
    }
    port->connect(std::move(others));
  }
}

QueueExchange::~QueueExchange() {
  for (const auto& port : ports_) port->drain();
}

port::Port& QueueExchange::port(uint32_t queue) {
  RNIC_CHECK(queue < ports_.size());
  return *ports_[queue];
}

}  // namespace rnic::net

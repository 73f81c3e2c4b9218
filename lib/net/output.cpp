#include "net/output.hpp"

#include <algorithm>
#include <cstring>

#include "base/check.hpp"

namespace rnic::net {

Output::Output(const Config& config, port::Port& port, const Routes& routes, Neighbours& neighbours,
               TxQueue& tx, Counters& counters)
    : routes_(routes),
      neighbours_(neighbours),
      tx_(tx),
      counters_(counters),
      link_(port.info().mac, config.vlan),
      ipv4_(config),
      ipv6_(config),
      checksum_open_(port.info().checksum != port::ChecksumMode::Software),
      // A medium that is memory has no shortest frame, unlike Ethernet.
      shortest_(port.info().checksum == port::ChecksumMode::Trusted ? 0 : wire::kEtherShortest) {
  const uint32_t mtu = std::min(config.mtu, port.info().mtu);
  RNIC_CHECK(mtu >= 68);  // RFC 791: every net carries 68 octets
  room4_ = mtu - wire::kIpv4Header;
  room6_ = mtu - wire::kIpv6Header;
}

bool Output::find_hop(const IpAddress& destination) {
  if (knows_hop(destination)) return true;
  const std::optional<IpAddress> next_hop = routes_.next_hop(destination);
  if (!next_hop) return false;
  hop_ = {true, destination, *next_hop, nullptr, 0};
  return true;
}

const port::MacAddress* Output::find_mac(const IpAddress& destination) {
  RNIC_CHECK(find_hop(destination));
  if (hop_.mac == nullptr || hop_.generation != neighbours_.generation()) {
    hop_.mac = neighbours_.find(hop_.next_hop);
    hop_.generation = neighbours_.generation();
  }
  return hop_.mac;
}

bool Output::begin(const IpAddress& source, const IpAddress& destination, TxFrame& frame,
                   base::Now now) {
  if (!find_hop(destination)) {
    ++counters_.no_route;
    return false;
  }
  return begin_on_link(source, destination, frame, now);
}

bool Output::begin_on_link(const IpAddress& source, const IpAddress& destination, TxFrame& frame,
                           base::Now now) {
  if (!tx_.open(frame.packet, now)) return false;
  const bool v4 = destination.is_v4();
  frame.l4 = frame.packet.data + link_.size() + (v4 ? wire::kIpv4Header : wire::kIpv6Header);
  set_terms(source, destination, frame);
  return true;
}

bool Output::begin_run(const IpAddress& source, const IpAddress& destination, uint32_t most,
                       TxRun& run, base::Now now) {
  if (!find_hop(destination)) {
    ++counters_.no_route;
    return false;
  }
  run.count = tx_.open(std::span(run.packets).first(std::min(most, TxRun::kMost)), now);
  if (run.count == 0) return false;
  run.l4_at = link_.size() + (destination.is_v4() ? wire::kIpv4Header : wire::kIpv6Header);
  set_terms(source, destination, run);
  return true;
}

[[gnu::always_inline]] inline void Output::set_terms(const IpAddress& source,
                                                     const IpAddress& destination,
                                                     TxTerms& terms) const {
  terms.l4_room = destination.is_v4() ? room4_ : room6_;
  terms.l4_checksum_open = checksum_open_;
  terms.source = source;
  terms.destination = destination;
  terms.traffic_class = 0;
  terms.hop_limit = 0;
}

[[gnu::always_inline]] inline void Output::finish(TxFrame& frame, uint8_t protocol,
                                                  uint32_t l4_length) {
  port::Packet& packet = frame.packet;
  uint8_t* ip = packet.data + link_.size();
  uint32_t length = link_.size() + l4_length;
  if (frame.destination.is_v4()) [[likely]] {
    RNIC_CHECK(l4_length <= room4_);
    link_.write(packet.data, wire::kEtherTypeIpv4);
    ipv4_.write(ip,
                ipv4_.prepare(frame.source.as_v4(), frame.destination.as_v4(), protocol,
                              frame.traffic_class, frame.hop_limit),
                ipv4_.take_ids(1), l4_length);
    length += wire::kIpv4Header;
  } else {
    RNIC_CHECK(l4_length <= room6_);
    link_.write(packet.data, wire::kEtherTypeIpv6);
    ipv6_.write(ip, frame.source, frame.destination, protocol, frame.traffic_class, frame.hop_limit,
                l4_length);
    length += wire::kIpv6Header;
  }
  finish(packet, length, l4_checksum(frame, protocol));
  frame.l4 = nullptr;
}

[[gnu::always_inline]] inline void Output::finish(port::Packet& packet, uint32_t length,
                                                  port::Checksum l4_checksum) const {
  packet.length = length;
  if (length < shortest_) [[unlikely]]
    pad(packet);
  packet.ip_checksum = port::Checksum::Unknown;
  packet.l4_checksum = l4_checksum;
}

// Pads a short frame with zeros, which are no part of the packet (IEEE 802.3 s.3.2.8, RFC 894). Not
// every device does this itself.
void Output::pad(port::Packet& packet) const {
  std::memset(packet.data + packet.length, 0, shortest_ - packet.length);
  packet.length = shortest_;
}

void Output::send(TxFrame& frame, uint8_t protocol, uint32_t l4_length, base::Now now) {
  finish(frame, protocol, l4_length);
  const port::MacAddress* mac = find_mac(frame.destination);
  if (mac != nullptr) [[likely]] {
    wire::store_mac(frame.packet.data + wire::kEtherDestinationAt, *mac);
    tx_.push(frame.packet, now);
  } else {
    tx_.release_place();
    neighbours_.park(hop_.next_hop, frame.packet, now);
  }
}

void Output::send_run(TxRun& run, uint8_t protocol, std::span<const uint32_t> l4_lengths,
                      base::Now now) {
  RNIC_CHECK(l4_lengths.size() <= run.count);
  for (; run.count > l4_lengths.size(); --run.count) tx_.cancel(run.packets[run.count - 1]);
  const port::MacAddress* mac = find_mac(run.destination);
  if (mac == nullptr || !run.destination.is_v4()) [[unlikely]]
    return send_each(run, protocol, l4_lengths, now);
  // These are copies, which no octet that is written can change, so that they stay in registers.
  const LinkHeader::Octets link = link_.to(*mac, wire::kEtherTypeIpv4);
  const bool tagged = link_.size() != wire::kEtherHeader;
  const Ipv4Output::Prepared ip =
      ipv4_.prepare(run.source.as_v4(), run.destination.as_v4(), protocol, run.traffic_class,
                    run.hop_limit);
  uint16_t id = ipv4_.take_ids(run.count);
  const uint32_t l4_at = run.l4_at;
  const port::Checksum checksum = l4_checksum(run, protocol);
  const std::span<port::Packet> packets = std::span(run.packets).first(run.count);
  const uint32_t* l4_length = l4_lengths.data();
  for (port::Packet& packet : packets) {
    const uint32_t length = *l4_length++;
    RNIC_CHECK(length <= room4_);
    uint8_t* const frame = packet.data;
    std::memcpy(frame, link.data(), wire::kEtherHeader);
    if (tagged) [[unlikely]] std::memcpy(frame, link.data(), link.size());
    Ipv4Output::write(frame + l4_at - wire::kIpv4Header, ip, id++, length);
    finish(packet, l4_at + length, checksum);
  }
  tx_.push(packets, now);
  run.count = 0;
}

// Sends packets of IPv6, or to a neighbour that is not known yet.
[[gnu::noinline]] void Output::send_each(TxRun& run, uint8_t protocol,
                                         std::span<const uint32_t> l4_lengths, base::Now now) {
  TxFrame frame{run, {}, nullptr};
  for (uint32_t i = 0; i < run.count; ++i) {
    frame.packet = run.packets[i];
    send(frame, protocol, l4_lengths[i], now);
  }
  run.count = 0;
}

void Output::send_on_link(TxFrame& frame, uint8_t protocol, uint32_t l4_length,
                          const port::MacAddress& mac, base::Now now) {
  finish(frame, protocol, l4_length);
  wire::store_mac(frame.packet.data + wire::kEtherDestinationAt, mac);
  tx_.push(frame.packet, now);
}

uint8_t* Output::begin_raw(port::Packet& packet, base::Now now) {
  return tx_.open(packet, now) ? packet.data + link_.size() : nullptr;
}

void Output::send_raw(port::Packet& packet, uint16_t ether_type, uint32_t length,
                      const port::MacAddress& to, base::Now now) {
  link_.write(packet.data, ether_type);
  wire::store_mac(packet.data + wire::kEtherDestinationAt, to);
  packet.length = link_.size() + length;
  if (packet.length < shortest_) pad(packet);
  packet.ip_checksum = port::Checksum::Unknown;
  packet.l4_checksum = port::Checksum::Unknown;
  tx_.push(packet, now);
}

}  // namespace rnic::net

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
  if (hop_.valid && hop_.destination == destination) return true;
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
  frame.l4_room = v4 ? room4_ : room6_;
  frame.l4_checksum_open = checksum_open_;
  frame.source = source;
  frame.destination = destination;
  frame.traffic_class = 0;
  frame.hop_limit = 0;
  return true;
}

[[gnu::always_inline]] inline void Output::finish(TxFrame& frame, uint8_t protocol,
                                                  uint32_t l4_length) {
  port::Packet& packet = frame.packet;
  uint8_t* ip = packet.data + link_.size();
  if (frame.destination.is_v4()) [[likely]] {
    RNIC_CHECK(l4_length <= room4_);
    link_.write(packet.data, wire::kEtherTypeIpv4);
    ipv4_.write(ip, frame.source.as_v4(), frame.destination.as_v4(), protocol, frame.traffic_class,
                frame.hop_limit, l4_length);
    packet.length = link_.size() + wire::kIpv4Header + l4_length;
  } else {
    RNIC_CHECK(l4_length <= room6_);
    link_.write(packet.data, wire::kEtherTypeIpv6);
    ipv6_.write(ip, frame.source, frame.destination, protocol, frame.traffic_class, frame.hop_limit,
                l4_length);
    packet.length = link_.size() + wire::kIpv6Header + l4_length;
  }
  if (packet.length < shortest_) [[unlikely]]
    pad(packet);
  packet.ip_checksum = port::Checksum::Unknown;
  // Ports complete checksums of TCP only.
  packet.l4_checksum = frame.l4_checksum_open && protocol == wire::kProtocolTcp
                           ? port::Checksum::Open
                           : port::Checksum::Unknown;
  frame.l4 = nullptr;
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

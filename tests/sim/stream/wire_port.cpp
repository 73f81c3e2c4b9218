#include "stream/wire_port.hpp"

#include <algorithm>

#include "llp/pseudo_header.hpp"
#include "wire/arp.hpp"
#include "wire/ether.hpp"
#include "wire/icmp.hpp"
#include "wire/inet_checksum.hpp"
#include "wire/ipv4.hpp"
#include "wire/ipv6.hpp"
#include "wire/nd.hpp"

namespace rnic::simulation {

namespace {

constexpr port::MacAddress kHostMac{2, 0, 0, 0, 0, 1};
constexpr port::MacAddress kRouterMac{2, 0, 0, 0, 0, 0xfe};
constexpr uint32_t kBuffers = 512;
constexpr uint64_t kLinkLocal = 0xfe80000000000000;

IpAddress address_of(const wire::Ipv6Address& a) { return {a.high, a.low}; }

/// An ICMPv6 message with its checksum, as a frame for the host.
std::vector<uint8_t> icmp6_frame(const wire::Ipv6Address& from, const wire::Ipv6Address& to,
                                 uint8_t hop_limit, std::vector<uint8_t> message) {
  const auto length = static_cast<uint32_t>(message.size());
  const uint32_t pseudo =
      llp::pseudo_header_sum(address_of(from), address_of(to), wire::kNextIcmpv6, length);
  base::store_be16(&message[wire::kIcmpChecksumAt], 0);
  base::store_be16(&message[wire::kIcmpChecksumAt],
                   wire::checksum_fold(wire::checksum_add(pseudo, message)));
  wire::Ipv6 ip;
  ip.source = from;
  ip.destination = to;
  ip.next_header = wire::kNextIcmpv6;
  ip.hop_limit = hop_limit;
  ip.payload_length = length;
  std::vector<uint8_t> frame(wire::kEtherHeader + wire::kIpv6Header + length);
  wire::write_ether(frame.data(), kHostMac, kRouterMac, wire::kEtherTypeIpv6);
  wire::write_ipv6(frame.data() + wire::kEtherHeader, ip);
  std::copy(message.begin(), message.end(), frame.end() - length);
  return frame;
}

}  // namespace

WirePort::WirePort(uint32_t mtu, Verdict& verdict, Send send)
    : verdict_(verdict), send_(std::move(send)) {
  info_.name = "wire";
  info_.mac = kHostMac;
  info_.mtu = mtu;
  for (uint32_t i = 0; i < kBuffers; ++i) {
    buffers_.push_back(std::make_unique<std::vector<uint8_t>>(mtu + port::kLinkHeader));
    free_.push_back(buffers_.back().get());
  }
}

void WirePort::receive(std::vector<uint8_t> frame) {
  std::copy(kHostMac.begin(), kHostMac.end(), frame.begin());
  std::copy(kRouterMac.begin(), kRouterMac.end(), frame.begin() + wire::kEtherSourceAt);
  received_.push_back(std::move(frame));
}

uint32_t WirePort::rx_burst(std::span<port::Packet> out, base::Now) {
  uint32_t n = 0;
  for (; n < out.size() && !received_.empty() && alloc(out.subspan(n, 1)); ++n) {
    const std::vector<uint8_t>& frame = received_.front();
    // What another host's larger MTU let through is cut here: a lost frame, in the end.
    out[n].length = static_cast<uint32_t>(std::min<size_t>(frame.size(), out[n].room));
    std::copy_n(frame.begin(), out[n].length, out[n].data);
    received_.pop_front();
  }
  return n;
}

bool WirePort::alloc(std::span<port::Packet> out) {
  if (free_.size() < out.size()) return false;
  for (port::Packet& packet : out) {
    std::vector<uint8_t>* buffer = free_.back();
    free_.pop_back();
    packet = {};
    packet.data = buffer->data();
    packet.room = static_cast<uint32_t>(buffer->size());
    packet.buffer = reinterpret_cast<port::Buffer*>(buffer);
  }
  return true;
}

void WirePort::free(std::span<const port::Packet> packets) {
  for (const port::Packet& packet : packets) {
    free_.push_back(reinterpret_cast<std::vector<uint8_t>*>(packet.buffer));
  }
}

uint32_t WirePort::tx_burst(std::span<port::Packet> packets, base::Now now) {
  for (const port::Packet& packet : packets) transmit(packet.view(), now);
  free(packets);
  return static_cast<uint32_t>(packets.size());
}

void WirePort::transmit(base::ByteView frame, base::Now now) {
  if (frame.size() < wire::kEtherShortest) verdict_.fail("frames", "a frame that is too short");
  const base::ByteView packet = frame.subspan(wire::kEtherHeader);
  switch (base::load_be16(frame.data() + wire::kEtherTypeAt)) {
    case wire::kEtherTypeArp: return answer_arp(packet);
    case wire::kEtherTypeIpv4:
      if (const auto ip = wire::parse_ipv4(packet);
          ip && ip->protocol == wire::kProtocolTcp && !ip->is_fragment() &&
          wire::ipv4_checksum_good(packet.first(ip->header_length))) {
        const base::ByteView tcp =
            packet.subspan(ip->header_length, ip->total_length - ip->header_length);
        return send_({IpAddress::v4(ip->source),
                      IpAddress::v4(ip->destination),
                      {tcp.begin(), tcp.end()},
                      ip->tos},
                     now);
      }
      break;
    case wire::kEtherTypeIpv6:
      if (const auto ip = wire::parse_ipv6(packet); ip && ip->next_header == wire::kProtocolTcp) {
        const base::ByteView tcp = packet.subspan(wire::kIpv6Header, ip->payload_length);
        return send_({address_of(ip->source),
                      address_of(ip->destination),
                      {tcp.begin(), tcp.end()},
                      ip->traffic_class},
                     now);
      }
      return answer_solicitation(packet);
    default: break;
  }
  verdict_.fail("frames", "something that is no packet of TCP");
}

void WirePort::answer_arp(base::ByteView packet) {
  const auto arp = wire::parse_arp(packet);
  if (!arp || arp->operation != wire::kArpRequest) return;
  std::vector<uint8_t> frame(wire::kEtherShortest);
  wire::write_ether(frame.data(), kHostMac, kRouterMac, wire::kEtherTypeArp);
  wire::write_arp(frame.data() + wire::kEtherHeader,
                  {wire::kArpReply, kRouterMac, arp->target_ip, arp->sender_mac, arp->sender_ip});
  receive(std::move(frame));
}

void WirePort::answer_solicitation(base::ByteView packet) {
  const auto ip = wire::parse_ipv6(packet);
  if (!ip || ip->next_header != wire::kNextIcmpv6) return verdict_.fail("frames", "no ICMPv6");
  const auto question =
      wire::parse_neighbour_message(packet.subspan(wire::kIpv6Header, ip->payload_length));
  if (!question || question->type != wire::kIcmpv6NeighbourSolicitation) {
    return verdict_.fail("frames", "no neighbour solicitation");
  }
  wire::NeighbourMessage answer;
  answer.type = wire::kIcmpv6NeighbourAdvertisement;
  answer.flags = wire::kNdFlagSolicited | wire::kNdFlagOverride;
  answer.target = question->target;
  answer.link = kRouterMac;
  std::vector<uint8_t> message(wire::kNdMessage);
  message.resize(wire::write_neighbour_message(message.data(), answer));
  receive(icmp6_frame(question->target, ip->source, wire::kNdHopLimit, std::move(message)));
}

std::vector<uint8_t> icmp_frame(uint8_t type, uint8_t code, uint32_t mtu, const IpAddress& source,
                                const IpAddress& destination, uint32_t quoted_length,
                                base::ByteView quote) {
  const bool v4 = source.is_v4();
  const uint32_t header = v4 ? wire::kIpv4Header : wire::kIpv6Header;
  std::vector<uint8_t> message(wire::kIcmpHeader + header);
  message[wire::kIcmpTypeAt] = type;
  message[wire::kIcmpCodeAt] = code;
  if (v4) {
    base::store_be16(&message[wire::kIcmpMtuAt], static_cast<uint16_t>(mtu));
    wire::Ipv4 ip;
    ip.source = source.as_v4();
    ip.destination = destination.as_v4();
    ip.protocol = wire::kProtocolTcp;
    ip.ttl = 60;
    ip.total_length = quoted_length;
    wire::write_ipv4(&message[wire::kIcmpHeader], ip);
  } else {
    base::store_be32(&message[wire::kIcmpRestAt], mtu);
    wire::Ipv6 ip;
    ip.source = {source.high(), source.low()};
    ip.destination = {destination.high(), destination.low()};
    ip.next_header = wire::kProtocolTcp;
    ip.hop_limit = 60;
    ip.payload_length = quoted_length - wire::kIpv6Header;
    wire::write_ipv6(&message[wire::kIcmpHeader], ip);
  }
  message.insert(message.end(), quote.begin(), quote.end());
  if (!v4) {
    return icmp6_frame({kLinkLocal, 0xfe}, {source.high(), source.low()}, 64, std::move(message));
  }
  base::store_be16(&message[wire::kIcmpChecksumAt],
                   wire::checksum_fold(wire::checksum_add(0, message)));
  wire::Ipv4 ip;
  ip.source = 0x0a0000fe;
  ip.destination = source.as_v4();
  ip.protocol = wire::kProtocolIcmp;
  ip.ttl = 64;
  ip.total_length = wire::kIpv4Header + static_cast<uint32_t>(message.size());
  std::vector<uint8_t> frame(wire::kEtherHeader + ip.total_length);
  wire::write_ether(frame.data(), kHostMac, kRouterMac, wire::kEtherTypeIpv4);
  wire::write_ipv4(frame.data() + wire::kEtherHeader, ip);
  std::copy(message.rbegin(), message.rend(), frame.rbegin());
  return frame;
}

}  // namespace rnic::simulation

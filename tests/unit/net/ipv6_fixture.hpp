/// \file
/// The interface of net_fixture with IPv6: fd00::1/64 and its link-local address, a neighbour
/// fd00::2, and frames from it.
#pragma once

#include <initializer_list>

#include "llp/pseudo_header.hpp"
#include "net/addresses.hpp"
#include "net_fixture.hpp"
#include "wire/ipv6.hpp"
#include "wire/nd.hpp"

namespace rnic::net {

inline constexpr IpAddress kOurs6{0xfd00000000000000, 1};
inline constexpr IpAddress kPeer6{0xfd00000000000000, 2};
inline constexpr IpAddress kGateway6{0xfe80000000000000, 0xfe};
inline constexpr IpAddress kFar6{0x20010db800000000, 9};
inline constexpr IpAddress kOurLinkLocal = link_local_address(kOurMac);

using Octets = std::vector<uint8_t>;

inline Octets joined(std::initializer_list<Octets> parts) {
  Octets all;
  for (const Octets& part : parts) all.insert(all.end(), part.begin(), part.end());
  return all;
}

/// An Ethernet frame with an IPv6 packet from kPeer6 to kOurs6 unless `ip` says otherwise.
inline Octets ip6_frame(wire::Ipv6 ip, const Octets& payload,
                        const port::MacAddress& to = kOurMac) {
  if (ip.source.high == 0 && ip.source.low == 0) ip.source = to_wire(kPeer6);
  if (ip.destination.high == 0 && ip.destination.low == 0) ip.destination = to_wire(kOurs6);
  if (ip.hop_limit == 0) ip.hop_limit = 64;
  ip.payload_length = static_cast<uint32_t>(payload.size());
  Octets frame(wire::kEtherHeader + wire::kIpv6Header);
  wire::write_ether(frame.data(), to, kPeerMac, wire::kEtherTypeIpv6);
  wire::write_ipv6(frame.data() + wire::kEtherHeader, ip);
  return joined({frame, payload});
}

inline wire::Ipv6 with_next(uint8_t next) {
  wire::Ipv6 ip;
  ip.next_header = next;
  return ip;
}

/// Completes the checksum of an ICMPv6 message.
inline Octets icmp6(Octets message, const IpAddress& from = kPeer6, const IpAddress& to = kOurs6) {
  base::store_be16(message.data() + 2, 0);
  const uint32_t pseudo =
      llp::pseudo_header_sum(from, to, wire::kNextIcmpv6, static_cast<uint32_t>(message.size()));
  base::store_be16(message.data() + 2, wire::checksum_fold(wire::checksum_add(pseudo, message)));
  return message;
}

struct Sent6 {
  port::MacAddress mac{};
  wire::Ipv6 ip;
  Octets payload;
};

inline Sent6 parse6(const test::SentFrame& frame) {
  Sent6 out;
  out.mac = mac_to(frame);
  const auto packet = base::ByteView(frame.octets).subspan(wire::kEtherHeader);
  const auto ip = wire::parse_ipv6(packet);
  EXPECT_TRUE(ip.has_value());
  if (!ip) return out;
  out.ip = *ip;
  const auto payload = packet.subspan(wire::kIpv6Header, ip->payload_length);
  out.payload.assign(payload.begin(), payload.end());
  if (ip->next_header == wire::kNextIcmpv6) {
    const uint32_t pseudo = llp::pseudo_header_sum(
        from_wire(ip->source), from_wire(ip->destination), wire::kNextIcmpv6, ip->payload_length);
    EXPECT_EQ(wire::checksum_fold(wire::checksum_add(pseudo, payload)), 0);
  }
  return out;
}

inline wire::NeighbourMessage neighbour_of(const Sent6& sent) {
  const auto message = wire::parse_neighbour_message(sent.payload);
  EXPECT_TRUE(message.has_value());
  return message.value_or(wire::NeighbourMessage{});
}

/// A neighbour discovery message as a frame with hop limit 255.
inline Octets nd_frame(const wire::NeighbourMessage& message, const IpAddress& from,
                       const IpAddress& to, const port::MacAddress& mac, uint8_t hop_limit = 255) {
  Octets body(wire::kNdMessage);
  body.resize(wire::write_neighbour_message(body.data(), message));
  wire::Ipv6 ip = with_next(wire::kNextIcmpv6);
  ip.source = to_wire(from);
  ip.destination = to_wire(to);
  ip.hop_limit = hop_limit;
  Octets frame = ip6_frame(ip, icmp6(body, from, to), mac);
  // ip6_frame() takes no address for its default.
  wire::store_ipv6_address(frame.data() + wire::kEtherHeader + wire::kIpv6SourceAt, ip.source);
  return frame;
}

inline Octets advertisement(const IpAddress& target, const port::MacAddress& mac,
                            uint8_t flags = wire::kNdFlagSolicited | wire::kNdFlagOverride) {
  return nd_frame({wire::kIcmpv6NeighbourAdvertisement, flags, to_wire(target), mac}, target,
                  kOurs6, kOurMac);
}

inline Octets solicitation(const IpAddress& from, const port::MacAddress& mac) {
  const wire::Ipv6Address group = wire::solicited_node(to_wire(kOurs6));
  return nd_frame({wire::kIcmpv6NeighbourSolicitation, 0, to_wire(kOurs6), mac}, from,
                  from_wire(group), wire::multicast_mac(group));
}

class Ipv6Test : public NetTest {
 protected:
  void SetUp() override {
    config_.address = kOurs;
    config_.addresses = {{kOurs6, 64}};
    config_.gateway6 = kGateway6;
    start();
  }
  bool send6(const IpAddress& to, uint32_t length = 100, uint8_t fill = 0x5a) {
    TxFrame frame;
    if (!interface_->begin(kOurs6, to, frame, now_)) return false;
    std::memset(frame.l4, fill, length);
    interface_->send(frame, wire::kProtocolTcp, length, now_);
    return true;
  }
  void learn6(const IpAddress& ip, const port::MacAddress& mac) {
    send6(ip);
    receive(advertisement(ip, mac));
    interface_->flush(now_);
    port_->sent().clear();
  }
  Sent6 take6() {
    interface_->flush(now_);
    return parse6(port_->take_sent());
  }
  size_t sent() {
    interface_->flush(now_);
    return port_->sent().size();
  }
};

}  // namespace rnic::net

#include "net/icmp_error.hpp"

#include <algorithm>
#include <cstring>

#include "net/addresses.hpp"
#include "net/ipv6_headers.hpp"
#include "wire/icmp.hpp"
#include "wire/ipv4.hpp"
#include "wire/ipv6.hpp"

namespace rnic::net {

namespace {

constexpr uint32_t kQuotedL4 = 8;  // octets of the transport header in every quote (RFC 792)

llp::IcmpError::Kind kind_of(uint8_t type, uint8_t code) {
  if (type == wire::kIcmpSourceQuench) return llp::IcmpError::Kind::SourceQuench;
  if (type != wire::kIcmpUnreachable) return llp::IcmpError::Kind::Soft;
  switch (code) {
    case wire::kIcmpFragmentationNeeded: return llp::IcmpError::Kind::PacketTooBig;
    case wire::kIcmpProtocolUnreachable:
    case wire::kIcmpPortUnreachable:
    case wire::kIcmpNetProhibited:
    case wire::kIcmpHostProhibited:
    case wire::kIcmpProhibited: return llp::IcmpError::Kind::Hard;
    default: return llp::IcmpError::Kind::Soft;
  }
}

llp::IcmpError::Kind kind_of_v6(uint8_t type, uint8_t code) {
  if (type == wire::kIcmpv6PacketTooBig) return llp::IcmpError::Kind::PacketTooBig;
  const bool unreachable =
      type == wire::kIcmpv6Unreachable &&
      (code == wire::kIcmpv6Prohibited || code == wire::kIcmpv6PortUnreachable ||
       code == wire::kIcmpv6SourcePolicy || code == wire::kIcmpv6RejectRoute);
  // In IPv6 this means that the peer does not know TCP, like protocol unreachable in IPv4.
  const bool unknown =
      type == wire::kIcmpv6ParameterProblem && code == wire::kIcmpv6UnknownNextHeader;
  return unreachable || unknown ? llp::IcmpError::Kind::Hard : llp::IcmpError::Kind::Soft;
}

}  // namespace

std::optional<llp::IcmpError> read_icmp_error(base::ByteView message, const Routes& routes) {
  if (message.size() < wire::kIcmpHeader + wire::kIpv4Header) return std::nullopt;
  const base::ByteView quote = message.subspan(wire::kIcmpHeader);
  // The quote is shorter than the total length of the quoted packet, so wire::parse_ipv4() cannot
  // be used.
  const uint8_t* ip = quote.data();
  const uint32_t header = (ip[wire::kIpv4VersionAt] & 15u) * 4;
  if (ip[wire::kIpv4VersionAt] >> 4 != 4 || header < wire::kIpv4Header ||
      quote.size() < header + kQuotedL4 || ip[wire::kIpv4ProtocolAt] != wire::kProtocolTcp ||
      (base::load_be16(ip + wire::kIpv4FragmentAt) & wire::kIpv4OffsetMask) != 0) {
    return std::nullopt;
  }
  llp::IcmpError error;
  error.type = message[wire::kIcmpTypeAt];
  error.code = message[wire::kIcmpCodeAt];
  error.kind = kind_of(error.type, error.code);
  if (error.kind == llp::IcmpError::Kind::PacketTooBig) {
    error.mtu = base::load_be16(message.data() + wire::kIcmpMtuAt);
  }
  // The first fragment of a packet does not say how long the packet was.
  const bool whole = (base::load_be16(ip + wire::kIpv4FragmentAt) & wire::kIpv4MoreFragments) == 0;
  error.quoted_length = whole ? base::load_be16(ip + wire::kIpv4LengthAt) : UINT16_MAX;
  error.source = IpAddress::v4(base::load_be32(ip + wire::kIpv4SourceAt));
  error.destination = IpAddress::v4(base::load_be32(ip + wire::kIpv4DestinationAt));
  error.tcp = quote.subspan(header);
  if (!routes.is_ours(error.source) || !routes.is_other_host(error.destination)) {
    return std::nullopt;
  }
  return error;
}

std::optional<llp::IcmpError> read_icmpv6_error(base::ByteView message, const Routes& routes) {
  if (message.size() < wire::kIcmpHeader + wire::kIpv6Header + kQuotedL4) return std::nullopt;
  const base::ByteView quote = message.subspan(wire::kIcmpHeader);
  const uint8_t* ip = quote.data();
  // Our own packets have no extension headers.
  if (ip[0] >> 4 != 6 || ip[wire::kIpv6NextHeaderAt] != wire::kProtocolTcp) return std::nullopt;
  llp::IcmpError error;
  error.type = message[wire::kIcmpTypeAt];
  error.code = message[wire::kIcmpCodeAt];
  error.kind = kind_of_v6(error.type, error.code);
  if (error.kind == llp::IcmpError::Kind::PacketTooBig) {
    error.mtu = base::load_be32(message.data() + wire::kIcmpRestAt);
    if (error.mtu < kIpv6LeastMtu) return std::nullopt;  // RFC 8201 s.4
  }
  error.quoted_length = wire::kIpv6Header + base::load_be16(ip + wire::kIpv6LengthAt);
  error.source = from_wire(wire::load_ipv6_address(ip + wire::kIpv6SourceAt));
  error.destination = from_wire(wire::load_ipv6_address(ip + wire::kIpv6DestinationAt));
  error.tcp = quote.subspan(wire::kIpv6Header);
  if (error.source.is_v4() || !routes.is_ours(error.source) || error.destination.is_v4() ||
      !routes.is_other_host(error.destination)) {
    return std::nullopt;
  }
  return error;
}

bool may_report4(base::ByteView packet) {
  if (packet.size() < wire::kIpv4Header) return false;
  const uint8_t* ip = packet.data();
  const uint32_t header = (ip[wire::kIpv4VersionAt] & 15u) * 4;
  if ((base::load_be16(ip + wire::kIpv4FragmentAt) & wire::kIpv4OffsetMask) != 0) return false;
  if (ip[wire::kIpv4ProtocolAt] != wire::kProtocolIcmp) return true;
  if (packet.size() <= header) return false;
  // All types but echo requests and replies count as errors, since future types may be errors.
  const uint8_t type = packet[header];
  return type == wire::kIcmpEchoRequest || type == wire::kIcmpEchoReply;
}

bool may_report6(base::ByteView packet) {
  if (packet.size() < wire::kIpv6Header) return false;
  const IpAddress source = from_wire(wire::load_ipv6_address(packet.data() + wire::kIpv6SourceAt));
  if (!source.is_unicast()) return false;
  // If the chain of headers cannot be walked to its end, the packet counts as no error.
  const Ipv6Chain chain = walk_ipv6(packet, wire::kIpv6NextHeaderAt, wire::kIpv6Header);
  if (chain.protocol != wire::kNextIcmpv6 || chain.result != Ipv6Chain::Result::Payload) {
    return true;
  }
  return chain.at < packet.size() && packet[chain.at] >= wire::kIcmpv6FirstInformational &&
         packet[chain.at] != wire::kIcmpv6Redirect;
}

uint32_t write_icmp_error(uint8_t* p, uint32_t room, const IcmpErrorOut& error,
                          base::ByteView packet) {
  const auto quoted =
      static_cast<uint32_t>(std::min<size_t>(packet.size(), room - wire::kIcmpHeader));
  p[wire::kIcmpTypeAt] = error.type;
  p[wire::kIcmpCodeAt] = error.code;
  base::store_be16(p + wire::kIcmpChecksumAt, 0);
  base::store_be32(p + wire::kIcmpRestAt, error.rest);
  std::memcpy(p + wire::kIcmpHeader, packet.data(), quoted);
  return wire::kIcmpHeader + quoted;
}

}  // namespace rnic::net

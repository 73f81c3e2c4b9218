#include "net/ipv4_input.hpp"

#include "wire/icmp.hpp"
#include "wire/ipv4.hpp"

namespace rnic::net {

std::optional<IpIn> Ipv4Input::input(const port::Packet& frame, base::ByteView octets,
                                     base::Now now) {
  const std::optional<wire::Ipv4> ip = wire::parse_ipv4(octets);
  if (!ip) {
    ++counters_.ip_bad_header;
    return std::nullopt;
  }
  if (!vouched(frame.ip_checksum, trusted_) &&
      (frame.ip_checksum == port::Checksum::Bad ||
       !wire::ipv4_checksum_good(octets.first(ip->header_length)))) {
    ++counters_.ip_checksum_errors;
    return std::nullopt;
  }
  if (!routes_.is_ours(ip->destination)) {
    ++counters_.ip_not_ours;
    return std::nullopt;
  }
  if (!routes_.is_other_host(ip->source)) {
    ++counters_.ip_bad_source;
    return std::nullopt;
  }
  IpIn in;
  in.source = IpAddress::v4(ip->source);
  in.destination = IpAddress::v4(ip->destination);
  in.protocol = ip->protocol;
  in.ecn = ip->tos & 3;
  // Octets past the total length are Ethernet padding.
  const base::ByteView packet = octets.first(ip->total_length);
  in.payload = packet.subspan(ip->header_length);
  if (ip->is_fragment()) [[unlikely]] {
    const std::optional<Reassembled> whole =
        fragments_.add({in.source, in.destination, ip->id, in.protocol, in.ecn,
                        (ip->fragment & wire::kIpv4OffsetMask) * 8u,
                        (ip->fragment & wire::kIpv4MoreFragments) != 0, in.payload, packet},
                       now);
    if (const auto refused = fragments_.take_refused()) {
      icmp_.report_too_large(refused->quote, refused->mtu, refused->destination, refused->source,
                             now);
    }
    if (!whole) return std::nullopt;
    in.protocol = whole->protocol;
    in.ecn = whole->ecn;
    in.payload = whole->payload;
  } else {
    in.l4_checksum_good = vouched(frame.l4_checksum, trusted_);
  }
  ++counters_.ip_in;
  if (in.protocol == wire::kProtocolTcp) [[likely]]
    return in;
  return dispatch(in, packet, now);
}

std::optional<IpIn> Ipv4Input::dispatch(const IpIn& in, base::ByteView packet, base::Now now) {
  if (in.protocol == wire::kProtocolIcmp) {
    icmp_.input4(in, now);
    return std::nullopt;
  }
  ++counters_.ip_unknown_protocol;
  // RFC 1122 s.3.2.2.1
  icmp_.report({wire::kIcmpUnreachable, wire::kIcmpProtocolUnreachable, 0}, packet, in.destination,
               in.source, now);
  return std::nullopt;
}

}  // namespace rnic::net

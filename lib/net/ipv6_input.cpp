#include "net/ipv6_input.hpp"

#include "net/addresses.hpp"
#include "net/ipv4_input.hpp"
#include "wire/icmp.hpp"
#include "wire/ipv4.hpp"
#include "wire/tcp.hpp"

namespace rnic::net {

namespace {

// RFC 6980 s.5: neighbour discovery ignores messages with a fragment header. This hop limit stands
// for them, since only 255 is accepted.
constexpr uint8_t kFragmented = 0;

}  // namespace

std::optional<IpIn> Ipv6Input::input(const port::Packet& frame, base::ByteView octets,
                                     bool to_group, base::Now now) {
  const std::optional<wire::Ipv6> ip = wire::parse_ipv6(octets);
  if (!ip) {
    ++counters_.ip_bad_header;
    return std::nullopt;
  }
  IpIn in;
  in.source = from_wire(ip->source);
  in.destination = from_wire(ip->destination);
  // A mapped address on the wire would be taken for an IPv4 address (RFC 4038 s.4.2).
  const bool ours = !in.destination.is_v4() && routes_.is_ours(in.destination);
  if (to_group ? !routes_.is_our_group(in.destination)
               : !ours && !routes_.is_our_group(in.destination)) {
    ++counters_.ip_not_ours;
    return std::nullopt;
  }
  const bool known_source = !in.source.is_v4() && routes_.is_other_host(in.source);
  if (!known_source && in.source != IpAddress{}) {
    ++counters_.ip_bad_source;
    return std::nullopt;
  }
  in.ecn = ip->traffic_class & 3;
  in.l4_checksum_good = vouched(frame.l4_checksum, trusted_);
  const base::ByteView packet = octets.first(wire::kIpv6Header + ip->payload_length);
  if (ip->next_header == wire::kProtocolTcp && ours && known_source) [[likely]] {
    ++counters_.ip6_in;
    in.protocol = wire::kProtocolTcp;
    in.payload = packet.subspan(wire::kIpv6Header);
    return in;
  }
  return other(in, *ip, packet, now);
}

// Takes the less common packets: those with extension headers, of ICMPv6, to a group, or from a
// host without an address.
std::optional<IpIn> Ipv6Input::other(IpIn in, const wire::Ipv6& ip, base::ByteView packet,
                                     base::Now now) {
  const Ipv6Chain chain = walk_ipv6(packet, wire::kIpv6NextHeaderAt, wire::kIpv6Header);
  if (chain.result == Ipv6Chain::Result::Payload) {
    in.payload = packet.subspan(chain.at);
    return deliver(in, chain, packet, ip.hop_limit, now);
  }
  if (chain.result != Ipv6Chain::Result::Fragment) return drop(in, chain, packet, now);
  const uint32_t behind = chain.at + wire::kIpv6FragmentHeader;
  const uint16_t where = base::load_be16(&packet[chain.at + wire::kIpv6FragmentOffsetAt]);
  if ((where & 0xfff9) == 0) {
    // RFC 6946: a whole packet with a fragment header has nothing to do with other fragments.
    const Ipv6Chain rest = walk_ipv6(packet, chain.at, behind);
    if (rest.result != Ipv6Chain::Result::Payload) return drop(in, rest, packet, now);
    in.payload = packet.subspan(rest.at);
    return deliver(in, rest, packet, kFragmented, now);
  }
  if (!in.source.is_unicast() || !in.destination.is_unicast()) {
    ++counters_.ip_fragments_dropped;
    return std::nullopt;
  }
  if (!add_fragment(in, chain, packet, now)) return std::nullopt;
  const Ipv6Chain inner = walk_fragmentable(in.payload, in.protocol);
  if (inner.result != Ipv6Chain::Result::Payload) {
    ++counters_.ip6_bad_extension;
    return std::nullopt;
  }
  in.payload = in.payload.subspan(inner.at);
  // No error is reported, since it would quote a packet that nobody has sent.
  return deliver(in, inner, {}, kFragmented, now);
}

std::optional<IpIn> Ipv6Input::deliver(IpIn& in, const Ipv6Chain& chain, base::ByteView packet,
                                       uint8_t hop_limit, base::Now now) {
  in.protocol = chain.protocol;
  if (in.protocol == wire::kNextIcmpv6) {
    ++counters_.ip6_in;
    icmp_.input6(in, hop_limit, now);
    return std::nullopt;
  }
  if (in.source.is_unspecified() || !in.destination.is_unicast()) {
    ++counters_.ip_bad_source;
    return std::nullopt;
  }
  ++counters_.ip6_in;
  if (in.protocol == wire::kProtocolTcp) return in;
  ++counters_.ip_unknown_protocol;
  if (in.protocol != wire::kNextNone) {
    report(in, wire::kIcmpv6UnknownNextHeader, chain.next_at, false, packet, now);
  }
  return std::nullopt;
}

// Adds a fragment (RFC 8200 s.4.5). \return the datagram is whole, and `in` is set to it
bool Ipv6Input::add_fragment(IpIn& in, const Ipv6Chain& chain, base::ByteView packet,
                             base::Now now) {
  const uint8_t* header = &packet[chain.at];
  const uint16_t where = base::load_be16(header + wire::kIpv6FragmentOffsetAt);
  Fragment fragment;
  fragment.source = in.source;
  fragment.destination = in.destination;
  fragment.id = base::load_be32(header + wire::kIpv6FragmentIdAt);
  fragment.protocol = header[0];
  fragment.ecn = in.ecn;
  fragment.offset = where & 0xfff8u;
  fragment.more = (where & 1) != 0;
  fragment.octets = packet.subspan(chain.at + wire::kIpv6FragmentHeader);
  fragment.packet = packet;
  if (fragment.more && fragment.octets.size() % 8 != 0) {
    ++counters_.ip_fragments_dropped;
    report(in, wire::kIcmpv6BadField, wire::kIpv6LengthAt, false, packet, now);
    return false;
  }
  if (fragment.offset + fragment.octets.size() > 65'535) {
    ++counters_.ip_fragments_dropped;
    report(in, wire::kIcmpv6BadField, chain.at + wire::kIpv6FragmentOffsetAt, false, packet, now);
    return false;
  }
  if (fragment.offset == 0) {
    // RFC 7112: the first fragment must have all headers, so that a filter can see them.
    const Ipv6Chain inner = walk_fragmentable(fragment.octets, fragment.protocol);
    const bool whole = inner.result == Ipv6Chain::Result::Payload &&
                       (inner.protocol != wire::kProtocolTcp ||
                        inner.at + wire::kTcpHeaderMin <= fragment.octets.size());
    if (!whole) {
      ++counters_.ip_fragments_dropped;
      report(in, wire::kIcmpv6IncompleteChain, 0, false, packet, now);
      return false;
    }
  }
  const std::optional<Reassembled> whole = fragments_.add(fragment, now);
  if (const auto refused = fragments_.take_refused()) {
    icmp_.report_too_large(refused->quote, refused->mtu, refused->destination, refused->source,
                           now);
  }
  if (!whole) return false;
  in.protocol = whole->protocol;
  in.ecn = whole->ecn;
  in.payload = whole->payload;
  in.l4_checksum_good = false;
  return true;
}

std::optional<IpIn> Ipv6Input::drop(const IpIn& in, const Ipv6Chain& chain, base::ByteView packet,
                                    base::Now now) {
  ++counters_.ip6_bad_extension;
  if (chain.result == Ipv6Chain::Result::Problem) {
    report(in, chain.code, chain.at, chain.not_to_group, packet, now);
  }
  return std::nullopt;
}

// Reports a parameter problem if it may be reported (RFC 4443 s.2.4 e, s.3.4).
void Ipv6Input::report(const IpIn& in, uint8_t code, uint32_t pointer, bool not_to_group,
                       base::ByteView packet, base::Now now) {
  if (packet.empty() || !routes_.is_other_host(in.source)) return;
  const bool to_group = !in.destination.is_unicast();
  if (to_group && (code != wire::kIcmpv6UnknownOption || not_to_group)) return;
  const IpAddress local = to_group ? routes_.source_for(in.source) : in.destination;
  icmp_.report({wire::kIcmpv6ParameterProblem, code, pointer}, packet, local, in.source, now);
}

}  // namespace rnic::net

#include "net/ipv4_input.hpp"

#include "wire/ether.hpp"
#include "wire/ipv4.hpp"

namespace rnic::net {

namespace {

bool vouched(port::Checksum checksum, bool trusted) {
  return checksum == port::Checksum::Good || (trusted && checksum == port::Checksum::Open);
}

}  // namespace

std::optional<Ipv4In> ipv4_input(const port::Packet& frame, const Route& route, bool trusted,
                                 Counters& counters) {
  const base::ByteView octets = frame.view().subspan(wire::kEtherHeader);
  const std::optional<wire::Ipv4> ip = wire::parse_ipv4(octets);
  if (!ip) {
    ++counters.ip_bad_header;
    return std::nullopt;
  }
  if (!vouched(frame.ip_checksum, trusted) &&
      (frame.ip_checksum == port::Checksum::Bad ||
       !wire::ipv4_checksum_good(octets.first(ip->header_length)))) {
    ++counters.ip_checksum_errors;
    return std::nullopt;
  }
  if (!route.is_ours(ip->destination)) {
    ++counters.ip_not_ours;
    return std::nullopt;
  }
  if (!route.is_other_host(ip->source)) {
    ++counters.ip_bad_source;
    return std::nullopt;
  }
  if (ip->is_fragment()) {
    ++counters.ip_fragments;
    return std::nullopt;
  }
  ++counters.ip_in;
  Ipv4In in;
  in.source = llp::IpAddress::v4(ip->source);
  in.destination = llp::IpAddress::v4(ip->destination);
  in.protocol = ip->protocol;
  in.ecn = ip->tos & 3;
  in.l4_checksum_good = vouched(frame.l4_checksum, trusted);
  // Octets past the total length are Ethernet padding.
  in.payload = octets.subspan(ip->header_length, ip->total_length - ip->header_length);
  return in;
}

}  // namespace rnic::net

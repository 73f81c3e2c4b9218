#include "offload/offload.hpp"

#include "base/endian.hpp"
#include "wire/ether.hpp"
#include "wire/inet_checksum.hpp"
#include "wire/ipv4.hpp"
#include "wire/ipv6.hpp"
#include "wire/tcp.hpp"

namespace rnic::offload {
namespace {

// RFC 9293 s.3.1, RFC 8200 s.8.1: the addresses of both versions end where their header ends, or
// where IPv4's options begin.
uint32_t tcp_pseudo_sum(base::ByteView frame, const TcpLayout& at) {
  const base::ByteView addresses = at.v4 ? frame.subspan(at.ip + wire::kIpv4SourceAt, 8)
                                         : frame.subspan(at.ip + wire::kIpv6SourceAt, 32);
  return wire::checksum_add(wire::kProtocolTcp + (at.end - at.tcp), addresses);
}

}  // namespace

std::optional<IpLayout> locate_ip(base::ByteView frame) {
  if (frame.size() < kEthernetHeader + wire::kVlanTag) return std::nullopt;
  IpLayout at;
  uint16_t type = base::load_be16(frame.data() + wire::kEtherTypeAt);
  if (type == wire::kEtherTypeVlan) {
    type = base::load_be16(frame.data() + wire::kVlanTypeAt);
    at.ip += wire::kVlanTag;
  }
  const base::ByteView packet = frame.subspan(at.ip);
  if (type == wire::kEtherTypeIpv4) {
    const std::optional<wire::Ipv4> ip = wire::parse_ipv4(packet);
    if (!ip) return std::nullopt;
    at.l4 = at.ip + ip->header_length;
    at.end = at.ip + ip->total_length;
    at.protocol = ip->protocol;
    at.fragment = ip->is_fragment();
    return at;
  }
  if (type != wire::kEtherTypeIpv6) return std::nullopt;
  const std::optional<wire::Ipv6> ip = wire::parse_ipv6(packet);
  if (!ip) return std::nullopt;
  at.v4 = false;
  at.l4 = at.ip + wire::kIpv6Header;
  at.end = at.l4 + ip->payload_length;
  at.protocol = ip->next_header;
  at.fragment = ip->next_header == wire::kNextFragment;
  return at;
}

std::optional<TcpLayout> locate_tcp(base::ByteView frame) {
  const auto ip = locate_ip(frame);
  if (!ip || ip->fragment || ip->protocol != wire::kProtocolTcp) return std::nullopt;
  if (ip->end - ip->l4 < wire::kTcpHeaderMin) return std::nullopt;
  const uint32_t header = (frame[ip->l4 + wire::kTcpDataOffsetAt] >> 4) * 4u;
  if (header < wire::kTcpHeaderMin || ip->end - ip->l4 < header) return std::nullopt;
  return TcpLayout{ip->v4, ip->ip, ip->l4, ip->l4 + header, ip->end};
}

void write_ip_length(base::ByteSpan frame, const TcpLayout& at) {
  uint8_t* ip = frame.data() + at.ip;
  if (at.v4) {
    base::store_be16(ip + wire::kIpv4LengthAt, static_cast<uint16_t>(at.end - at.ip));
    write_ip_checksum(frame, {true, at.ip, at.tcp, at.end, wire::kProtocolTcp, false});
  } else {
    base::store_be16(ip + wire::kIpv6LengthAt, static_cast<uint16_t>(at.end - at.tcp));
  }
}

void write_ip_checksum(base::ByteSpan frame, const IpLayout& at) {
  if (!at.v4) return;
  uint8_t* field = frame.data() + at.ip + wire::kIpv4ChecksumAt;
  base::store_be16(field, 0);
  const uint32_t sum = wire::checksum_add(0, {frame.data() + at.ip, at.l4 - at.ip});
  base::store_be16(field, wire::checksum_fold(sum));
}

void write_tcp_checksum(base::ByteSpan frame, const TcpLayout& at) {
  uint8_t* field = frame.data() + at.tcp + wire::kTcpChecksumAt;
  base::store_be16(field, 0);
  const uint32_t sum =
      wire::checksum_add(tcp_pseudo_sum(frame, at), {frame.data() + at.tcp, at.end - at.tcp});
  base::store_be16(field, wire::checksum_fold(sum));
}

void write_tcp_pseudo_sum(base::ByteSpan frame, const TcpLayout& at) {
  const uint16_t complement = wire::checksum_fold(tcp_pseudo_sum(frame, at));
  base::store_be16(frame.data() + at.tcp + wire::kTcpChecksumAt,
                   static_cast<uint16_t>(~complement));
}

bool ip_checksum_good(base::ByteView frame, const IpLayout& at) {
  return !at.v4 || wire::ipv4_checksum_good(frame.subspan(at.ip, at.l4 - at.ip));
}

bool tcp_checksum_good(base::ByteView frame, const TcpLayout& at) {
  const uint32_t sum =
      wire::checksum_add(tcp_pseudo_sum(frame, at), frame.subspan(at.tcp, at.end - at.tcp));
  return wire::checksum_fold(sum) == 0;
}

void complete_checksums(port::Packet& packet) {
  const base::ByteSpan frame{packet.data, packet.length};
  if (packet.ip_checksum == port::Checksum::Open) {
    if (const auto at = locate_ip(frame)) write_ip_checksum(frame, *at);
    packet.ip_checksum = port::Checksum::Unknown;
  }
  if (packet.l4_checksum == port::Checksum::Open) {
    if (const auto at = locate_tcp(frame)) write_tcp_checksum(frame, *at);
    packet.l4_checksum = port::Checksum::Unknown;
  }
}

}  // namespace rnic::offload

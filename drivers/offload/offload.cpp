#include "offload/offload.hpp"

#include "base/endian.hpp"
#include "wire/inet_checksum.hpp"

namespace rnic::offload {
namespace {

constexpr uint16_t kEtherTypeIpv4 = 0x0800;
constexpr uint8_t kProtocolTcp = 6;
constexpr uint32_t kIpChecksumOffset = 10;
constexpr uint32_t kTcpChecksumOffset = 16;

uint32_t tcp_pseudo_sum(const uint8_t* frame, const TcpLayout& at) {
  const uint8_t* ip = frame + at.ip;
  return wire::pseudo_header_sum(base::load_be32(ip + 12), base::load_be32(ip + 16), kProtocolTcp,
                                 at.end - at.tcp);
}

}  // namespace

std::optional<Ipv4Layout> locate_ipv4(base::ByteView frame) {
  if (frame.size() < kEthernetHeader + 20) return std::nullopt;
  if (base::load_be16(frame.data() + 12) != kEtherTypeIpv4) return std::nullopt;
  const uint8_t* ip = frame.data() + kEthernetHeader;
  const uint32_t header = (ip[0] & 0x0fu) * 4;
  const uint32_t total = base::load_be16(ip + 2);
  if ((ip[0] >> 4) != 4 || header < 20 || total < header) return std::nullopt;
  if (frame.size() - kEthernetHeader < total) return std::nullopt;
  Ipv4Layout at;
  at.l4 = at.ip + header;
  at.end = at.ip + total;
  at.protocol = ip[9];
  at.fragment = (base::load_be16(ip + 6) & 0x3fff) != 0;  // MF and the offset
  return at;
}

std::optional<TcpLayout> locate_tcp(base::ByteView frame) {
  const auto ip = locate_ipv4(frame);
  if (!ip || ip->fragment || ip->protocol != kProtocolTcp) return std::nullopt;
  if (ip->end - ip->l4 < 20) return std::nullopt;
  const uint32_t header = (frame[ip->l4 + 12] >> 4) * 4u;
  if (header < 20 || ip->end - ip->l4 < header) return std::nullopt;
  return TcpLayout{ip->ip, ip->l4, ip->l4 + header, ip->end};
}

void write_ip_checksum(base::ByteSpan frame, const Ipv4Layout& at) {
  uint8_t* field = frame.data() + at.ip + kIpChecksumOffset;
  base::store_be16(field, 0);
  const uint32_t sum = wire::checksum_add(0, {frame.data() + at.ip, at.l4 - at.ip});
  base::store_be16(field, wire::checksum_fold(sum));
}

void write_tcp_checksum(base::ByteSpan frame, const TcpLayout& at) {
  uint8_t* field = frame.data() + at.tcp + kTcpChecksumOffset;
  base::store_be16(field, 0);
  const uint32_t sum = wire::checksum_add(tcp_pseudo_sum(frame.data(), at),
                                          {frame.data() + at.tcp, at.end - at.tcp});
  base::store_be16(field, wire::checksum_fold(sum));
}

void write_tcp_pseudo_sum(base::ByteSpan frame, const TcpLayout& at) {
  const uint16_t complement = wire::checksum_fold(tcp_pseudo_sum(frame.data(), at));
  base::store_be16(frame.data() + at.tcp + kTcpChecksumOffset, static_cast<uint16_t>(~complement));
}

bool ip_checksum_good(base::ByteView frame, const Ipv4Layout& at) {
  return wire::checksum_fold(wire::checksum_add(0, frame.subspan(at.ip, at.l4 - at.ip))) == 0;
}

bool tcp_checksum_good(base::ByteView frame, const TcpLayout& at) {
  const uint32_t sum =
      wire::checksum_add(tcp_pseudo_sum(frame.data(), at), frame.subspan(at.tcp, at.end - at.tcp));
  return wire::checksum_fold(sum) == 0;
}

void complete_checksums(port::Packet& packet) {
  const base::ByteSpan frame{packet.data, packet.length};
  if (packet.ip_checksum == port::Checksum::Open) {
    if (const auto at = locate_ipv4(frame)) write_ip_checksum(frame, *at);
    packet.ip_checksum = port::Checksum::Unknown;
  }
  if (packet.l4_checksum == port::Checksum::Open) {
    if (const auto at = locate_tcp(frame)) write_tcp_checksum(frame, *at);
    packet.l4_checksum = port::Checksum::Unknown;
  }
}

}  // namespace rnic::offload

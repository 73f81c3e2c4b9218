/// \file
/// IPv4 header (RFC 791).
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <optional>

#include "base/bytes.hpp"
#include "base/endian.hpp"
#include "wire/inet_checksum.hpp"
#include "wire/ip_protocol.hpp"

namespace rnic::wire {

inline constexpr uint32_t kIpv4Header = 20;  ///< without options
inline constexpr uint32_t kIpv4VersionAt = 0;
inline constexpr uint32_t kIpv4TosAt = 1;
inline constexpr uint32_t kIpv4LengthAt = 2;
inline constexpr uint32_t kIpv4IdAt = 4;
inline constexpr uint32_t kIpv4FragmentAt = 6;
inline constexpr uint32_t kIpv4TtlAt = 8;
inline constexpr uint32_t kIpv4ProtocolAt = 9;
inline constexpr uint32_t kIpv4ChecksumAt = 10;
inline constexpr uint32_t kIpv4SourceAt = 12;
inline constexpr uint32_t kIpv4DestinationAt = 16;

inline constexpr uint16_t kIpv4DontFragment = 0x4000;
inline constexpr uint16_t kIpv4MoreFragments = 0x2000;
inline constexpr uint16_t kIpv4OffsetMask = 0x1fff;

/// Addresses in host order.
struct Ipv4 {
  uint32_t header_length = kIpv4Header;  ///< octets with options
  uint32_t total_length = 0;             ///< octets with header
  uint8_t tos = 0;
  uint16_t id = 0;
  uint16_t fragment = 0;  ///< flags and offset as on the wire
  uint8_t ttl = 0;
  uint8_t protocol = 0;
  uint32_t source = 0;
  uint32_t destination = 0;

  [[nodiscard]] constexpr bool is_fragment() const {
    return (fragment & (kIpv4MoreFragments | kIpv4OffsetMask)) != 0;
  }
};

/// Parses the octets behind the Ethernet header, which padding may follow. Empty when the version
/// or a length is impossible, so that header_length <= total_length <= octets.size() holds for the
/// result. Checksum and addresses are not judged.
[[nodiscard]] inline std::optional<Ipv4> parse_ipv4(base::ByteView octets) {
  if (octets.size() < kIpv4Header) return std::nullopt;
  const uint8_t* p = octets.data();
  Ipv4 ip;
  ip.header_length = static_cast<uint32_t>(p[kIpv4VersionAt] & 15) * 4;
  ip.total_length = base::load_be16(p + kIpv4LengthAt);
  if (p[kIpv4VersionAt] >> 4 != 4 || ip.header_length < kIpv4Header ||
      ip.header_length > ip.total_length || ip.total_length > octets.size()) {
    return std::nullopt;
  }
  ip.tos = p[kIpv4TosAt];
  ip.id = base::load_be16(p + kIpv4IdAt);
  ip.fragment = base::load_be16(p + kIpv4FragmentAt);
  ip.ttl = p[kIpv4TtlAt];
  ip.protocol = p[kIpv4ProtocolAt];
  ip.source = base::load_be32(p + kIpv4SourceAt);
  ip.destination = base::load_be32(p + kIpv4DestinationAt);
  return ip;
}

/// True when the header checksum over `header` (all header octets, a multiple of 4) is right. It
/// has a loop of its own, as each received packet comes by with these few words.
[[nodiscard]] inline bool ipv4_checksum_good(base::ByteView header) {
  uint64_t sum = 0;  // words of 32 bits: a header is whole ones, and a carry is lost by none
  for (size_t at = 0; at + 4 <= header.size(); at += 4) {
    uint32_t word;
    std::memcpy(&word, header.data() + at, sizeof word);
    sum += word;
  }
  sum = (sum & 0xffffffff) + (sum >> 32);
  sum = (sum & 0xffff) + ((sum >> 16) & 0xffff) + (sum >> 32);
  sum = (sum & 0xffff) + (sum >> 16);
  sum = (sum & 0xffff) + (sum >> 16);
  return sum == 0xffff;  // in either octet order (RFC 1071 s.2 B)
}

/// Writes kIpv4Header octets with the checksum; ip.header_length is ignored.
inline void write_ipv4(uint8_t* p, const Ipv4& ip) {
  p[kIpv4VersionAt] = 0x45;
  p[kIpv4TosAt] = ip.tos;
  base::store_be16(p + kIpv4LengthAt, static_cast<uint16_t>(ip.total_length));
  base::store_be16(p + kIpv4IdAt, ip.id);
  base::store_be16(p + kIpv4FragmentAt, ip.fragment);
  p[kIpv4TtlAt] = ip.ttl;
  p[kIpv4ProtocolAt] = ip.protocol;
  base::store_be16(p + kIpv4ChecksumAt, 0);
  base::store_be32(p + kIpv4SourceAt, ip.source);
  base::store_be32(p + kIpv4DestinationAt, ip.destination);
  base::store_be16(p + kIpv4ChecksumAt, checksum_fold(checksum_add(0, {p, kIpv4Header})));
}

}  // namespace rnic::wire

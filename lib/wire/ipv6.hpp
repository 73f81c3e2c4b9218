/// \file
/// IPv6 header and extension headers (RFC 8200).
#pragma once

#include <cstdint>
#include <optional>

#include "base/bytes.hpp"
#include "base/endian.hpp"
#include "wire/ip_protocol.hpp"

namespace rnic::wire {

inline constexpr uint32_t kIpv6Header = 40;
inline constexpr uint32_t kIpv6LengthAt = 4;
inline constexpr uint32_t kIpv6NextHeaderAt = 6;
inline constexpr uint32_t kIpv6HopLimitAt = 7;
inline constexpr uint32_t kIpv6SourceAt = 8;
inline constexpr uint32_t kIpv6DestinationAt = 24;

inline constexpr uint32_t kIpv6FragmentHeader = 8;
inline constexpr uint32_t kIpv6FragmentOffsetAt = 2;  ///< offset in the upper 13 bits, M lowest
inline constexpr uint32_t kIpv6FragmentIdAt = 4;

inline constexpr uint8_t kIpv6OptionPad1 = 0;
inline constexpr uint8_t kIpv6OptionPadN = 1;

/// An address as two halves of 8 octets, each in host order.
struct Ipv6Address {
  uint64_t high = 0;
  uint64_t low = 0;
};

struct Ipv6 {
  uint8_t traffic_class = 0;
  uint32_t flow_label = 0;  ///< 20 bits
  uint32_t payload_length = 0;
  uint8_t next_header = 0;
  uint8_t hop_limit = 0;
  Ipv6Address source;
  Ipv6Address destination;
};

[[nodiscard]] inline Ipv6Address load_ipv6_address(const uint8_t* p) {
  return {base::load_be64(p), base::load_be64(p + 8)};
}
inline void store_ipv6_address(uint8_t* p, const Ipv6Address& address) {
  base::store_be64(p, address.high);
  base::store_be64(p + 8, address.low);
}

/// Parses the octets behind the Ethernet header, which padding may follow. Empty when the version
/// or the length is impossible, so that kIpv6Header + payload_length <= octets.size() holds for the
/// result. Addresses are not judged.
[[nodiscard]] inline std::optional<Ipv6> parse_ipv6(base::ByteView octets) {
  if (octets.size() < kIpv6Header) return std::nullopt;
  const uint8_t* p = octets.data();
  const uint32_t first = base::load_be32(p);
  Ipv6 ip;
  ip.payload_length = base::load_be16(p + kIpv6LengthAt);
  if (first >> 28 != 6 || kIpv6Header + ip.payload_length > octets.size()) return std::nullopt;
  ip.traffic_class = static_cast<uint8_t>(first >> 20);
  ip.flow_label = first & 0xfffff;
  ip.next_header = p[kIpv6NextHeaderAt];
  ip.hop_limit = p[kIpv6HopLimitAt];
  ip.source = load_ipv6_address(p + kIpv6SourceAt);
  ip.destination = load_ipv6_address(p + kIpv6DestinationAt);
  return ip;
}

/// Writes kIpv6Header octets.
inline void write_ipv6(uint8_t* p, const Ipv6& ip) {
  base::store_be32(p, 6u << 28 | uint32_t{ip.traffic_class} << 20 | (ip.flow_label & 0xfffff));
  base::store_be16(p + kIpv6LengthAt, static_cast<uint16_t>(ip.payload_length));
  p[kIpv6NextHeaderAt] = ip.next_header;
  p[kIpv6HopLimitAt] = ip.hop_limit;
  store_ipv6_address(p + kIpv6SourceAt, ip.source);
  store_ipv6_address(p + kIpv6DestinationAt, ip.destination);
}

}  // namespace rnic::wire

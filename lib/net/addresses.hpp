/// \file
/// Converts addresses between their form on the wire and IpAddress, and derives addresses from
/// others.
#pragma once

#include <cstdint>

#include "rnic/address.hpp"
#include "wire/ether.hpp"
#include "wire/nd.hpp"

namespace rnic::net {

[[nodiscard]] constexpr IpAddress from_wire(const wire::Ipv6Address& a) { return {a.high, a.low}; }
[[nodiscard]] constexpr wire::Ipv6Address to_wire(const IpAddress& a) {
  return {a.high(), a.low()};
}

inline constexpr IpAddress kAllNodes = from_wire(wire::kAllNodes);

[[nodiscard]] constexpr IpAddress solicited_node(const IpAddress& address) {
  return from_wire(wire::solicited_node(to_wire(address)));
}

/// The link-local address of a MAC address: fe80:: with its modified EUI-64 (RFC 4291 s.2.5.6, RFC
/// 2464 s.4).
[[nodiscard]] constexpr IpAddress link_local_address(const wire::MacAddress& mac) {
  const uint64_t upper = uint64_t{mac[0] ^ 2u} << 16 | uint64_t{mac[1]} << 8 | mac[2];
  const uint64_t lower = uint64_t{mac[3]} << 16 | uint64_t{mac[4]} << 8 | mac[5];
  return {0xfe80000000000000, upper << 40 | uint64_t{0xfffe} << 24 | lower};
}

}  // namespace rnic::net

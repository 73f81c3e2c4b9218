/// \file
/// The part of IP that a transport's checksum covers.
#pragma once

#include <cstdint>

#include "rnic/address.hpp"

namespace rnic::llp {

/// The contribution of an address to a sum (RFC 1071; RFC 8200 s.8.1). The prefix of a mapped
/// address adds 0xffff, which is 0 in one's complement, so the sum is right for both families.
[[nodiscard]] constexpr uint64_t checksum_part(const IpAddress& address) {
  return (address.high() >> 32) + (address.high() & 0xffffffff) + (address.low() >> 32) +
         (address.low() & 0xffffffff);
}

/// Partial sum of the pseudo header (RFC 9293 s.3.1, RFC 8200 s.8.1) for wire::checksum_add().
/// \param length octets of the transport header and data
[[nodiscard]] constexpr uint32_t pseudo_header_sum(const IpAddress& a, const IpAddress& b,
                                                   uint8_t protocol, uint32_t length) {
  const uint64_t sum = checksum_part(a) + checksum_part(b) + protocol + length;
  const uint64_t once = (sum & 0xffffffff) + (sum >> 32);
  return static_cast<uint32_t>((once & 0xffff) + ((once >> 16) & 0xffff) + (once >> 32));
}

}  // namespace rnic::llp

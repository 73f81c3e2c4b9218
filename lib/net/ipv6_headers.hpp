/// \file
/// The chain of IPv6 extension headers (RFC 8200 s.4), walked with limits (RFC 8504 s.5.3).
#pragma once

#include <cstdint>

#include "base/bytes.hpp"

namespace rnic::net {

inline constexpr uint32_t kIpv6LeastMtu = 1280;  ///< RFC 8200 s.5

inline constexpr uint32_t kIpv6MaxHeaders = 8;   ///< extension headers of a packet
inline constexpr uint32_t kIpv6MaxOptions = 16;  ///< options of a packet, padding included

/// The result of the walk through the headers of a packet.
struct Ipv6Chain {
  enum class Result : uint8_t {
    Payload,    ///< `protocol` begins at `at`; it may be an unknown one
    Fragment,   ///< a fragment header is at `at`
    Truncated,  ///< a header is not whole
    Problem,    ///< the packet has to be dropped and reported with `code`; `at` is the pointer
    Drop,       ///< the packet has to be dropped without a report
  };
  Result result = Result::Drop;
  uint8_t protocol = 0;
  uint8_t code = 0;           ///< code of the ICMPv6 parameter problem
  uint32_t at = 0;            ///< octets from the IPv6 header
  uint32_t next_at = 0;       ///< place of the field that named `protocol`
  bool not_to_group = false;  ///< Problem: must not be reported if the packet was sent to a group
};

/// Walks the headers of a packet, which reaches from its IPv6 header to its end.
/// \param next_at place of the field that names the first header, which is at `at`
[[nodiscard]] Ipv6Chain walk_ipv6(base::ByteView packet, uint32_t next_at, uint32_t at);
/// Walks the headers in the octets of a fragment or of a reassembled datagram. \param next the type
/// of the first header. The places in the result count from the begin of `octets`, so they cannot
/// be reported to a sender.
[[nodiscard]] Ipv6Chain walk_fragmentable(base::ByteView octets, uint8_t next);

}  // namespace rnic::net

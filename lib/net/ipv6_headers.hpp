/// \file
/// The chain of IPv6 extension headers (RFC 8200 s.4), walked with limits (RFC 8504 s.5.3).
#pragma once

#include <cstdint>

#include "base/bytes.hpp"

namespace rnic::net {

inline constexpr uint32_t kIpv6LeastMtu = 1280;  ///< RFC 8200 s.5

inline constexpr uint32_t kIpv6MaxHeaders = 8;   ///< extension headers of a packet
inline constexpr uint32_t kIpv6MaxOptions = 16;  ///< options of a packet, padding included

/// Where the walk ended.
struct Ipv6Chain {
  enum class Result : uint8_t {
    Payload,    ///< `protocol` begins at `at`; whether anybody knows it, is not judged
    Fragment,   ///< a fragment header is at `at`
    Truncated,  ///< a header is not whole
    Problem,    ///< to be dropped and reported: `code`, `at` is the pointer
    Drop,       ///< to be dropped without a report
  };
  Result result = Result::Drop;
  uint8_t protocol = 0;
  uint8_t code = 0;           ///< of ICMPv6 parameter problem
  uint32_t at = 0;            ///< octets from the IPv6 header
  uint32_t next_at = 0;       ///< where the field is that named `protocol`
  bool not_to_group = false;  ///< Problem: not reported when the packet was for a group
};

/// The headers of a packet, from the IPv6 header to the packet's end.
/// \param next_at where the field is that names the header to begin with, which is at `at`
[[nodiscard]] Ipv6Chain walk_ipv6(base::ByteView packet, uint32_t next_at, uint32_t at);
/// The headers of a fragment's octets or of a whole datagram made of fragments, `next` the first of
/// them. The places of the result are those of `octets`, in no packet that a sender would know.
[[nodiscard]] Ipv6Chain walk_fragmentable(base::ByteView octets, uint8_t next);

}  // namespace rnic::net

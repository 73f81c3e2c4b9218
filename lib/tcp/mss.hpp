/// \file
/// How MSS, the maximum segment size, goes with the MTU of a link or a path (RFC 9293 s.3.7.1).
#pragma once

#include <algorithm>
#include <cstdint>

#include "rnic/address.hpp"

namespace rnic::tcp {

/// A peer that asks for less would only cost us headers.
inline constexpr uint16_t kSmallestMss = 216;

/// Of a SYN without an MSS option (MUST-15).
[[nodiscard]] inline uint16_t default_mss(const IpAddress& peer) {
  return peer.is_v4() ? 536 : 1220;
}
/// Of a link or a route: what kSmallestMss needs.
[[nodiscard]] inline uint32_t least_link_mtu(const IpAddress& peer) {
  return (peer.is_v4() ? 40 : 60) + kSmallestMss;
}
/// The largest MSS that a path carries: without the fixed headers.
[[nodiscard]] inline uint32_t mss_of_path(uint32_t mtu, const IpAddress& peer) {
  const uint32_t least = least_link_mtu(peer);
  return std::max(mtu, least) - (least - kSmallestMss);
}

}  // namespace rnic::tcp

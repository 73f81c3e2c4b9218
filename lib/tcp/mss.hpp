/// \file
/// The maximum segment size and the MTU that it belongs to (RFC 9293 s.3.7.1).
#pragma once

#include <algorithm>
#include <cstdint>

#include "rnic/address.hpp"
#include "wire/tcp.hpp"

namespace rnic::tcp {

/// The lower limit of the MSS that we use: a smaller one would only add headers.
inline constexpr uint16_t kSmallestMss = 216;

/// The MSS of a peer whose SYN had no MSS option (MUST-15).
[[nodiscard]] inline uint16_t default_mss(const IpAddress& peer) {
  return peer.is_v4() ? 536 : 1220;
}
/// Octets of the IP and TCP headers without options.
[[nodiscard]] inline uint32_t fixed_headers(const IpAddress& peer) {
  return (peer.is_v4() ? 20 : 40) + wire::kTcpHeaderMin;
}
/// The MTU that kSmallestMss needs.
[[nodiscard]] inline uint32_t least_link_mtu(const IpAddress& peer) {
  return fixed_headers(peer) + kSmallestMss;
}
/// The largest MSS that a path carries: without the fixed headers.
[[nodiscard]] inline uint32_t mss_of_path(uint32_t mtu, const IpAddress& peer) {
  return std::max(mtu, least_link_mtu(peer)) - fixed_headers(peer);
}

}  // namespace rnic::tcp

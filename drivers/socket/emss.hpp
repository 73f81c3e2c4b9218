/// \file
/// The effective MSS of a socket: what fits a segment now.
#pragma once

#include <cstdint>

#include "socket/calls.hpp"

namespace rnic::socket {

/// What the system tells about a connection; 0: nothing.
struct SegmentFacts {
  uint32_t send_mss = 0;        ///< tcpi_snd_mss of TCP_INFO, or TCP_MAXSEG
  uint32_t path_mtu = 0;        ///< IP_MTU or IPV6_MTU, octets of an IP packet
  uint32_t configured_mtu = 0;  ///< device.mtu
  bool v4 = true;
};

/// Octets of a segment without the system's word: draft-ietf-rddp-mpa-00 s.5.1.1.
inline constexpr uint32_t kUsualEmss = 1460;
inline constexpr uint32_t kSmallPathEmss = 536;

/// EMSS by the best of these: the system's own; the path's MTU less the headers to be expected,
/// with TCP timestamps (RFC 5044 s.5.1); 1460, or 536 where the MTU is configured below Ethernet's.
[[nodiscard]] uint32_t choose_emss(const SegmentFacts& facts);

/// Asks the system about a connected socket. \param v4 the peer's address is of IPv4
[[nodiscard]] SegmentFacts ask_system(System& system, int descriptor, bool v4,
                                      uint32_t configured_mtu);

}  // namespace rnic::socket

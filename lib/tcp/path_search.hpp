/// \file
/// What packetization-layer path MTU discovery (RFC 4821, RFC 8899) knows of one connection's path.
#pragma once

#include <cstdint>

#include "base/time.hpp"

namespace rnic::tcp {

/// Sizes are octets of an IP packet.
struct PathSearch {
  uint32_t limit = 0;          ///< larger ones are not known to pass; 0: the path's MTU holds
  uint32_t high = UINT32_MAX;  ///< nothing above it is tried in this search
  uint32_t probed = 0;         ///< size of the probe in flight
  uint32_t failures = 0;       ///< of the size in question
  base::Now next_at{};         ///< not before
  uint64_t probe_begin = 0;
  uint64_t probe_end = 0;    ///< 0: no probe in flight
  bool active = false;       ///< search upward from `limit`
  uint32_t pending_mtu = 0;  ///< a packet-too-big that could not be verified
  uint64_t pending_una = 0;  ///< SND.UNA when it came
};

}  // namespace rnic::tcp

/// \file
/// Statistics of the receiver of one connection, beside the counters of the device.
#pragma once

#include <cstdint>

namespace rnic::framing {

/// Octets that are placed at the delivery point on arrival are not counted here.
struct ReceiverStats {
  uint64_t placed_early = 0;       ///< octets placed out of order
  uint64_t held = 0;               ///< octets copied to hold space
  uint64_t dropped_damaged = 0;    ///< segments dropped before commit: a CRC was wrong
  uint64_t dropped_suspected = 0;  ///< segments dropped before commit on suspicion
  uint64_t dropped_no_room = 0;    ///< segments dropped before commit: no hold space
};

}  // namespace rnic::framing

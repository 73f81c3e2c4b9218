/// \file
/// What a receiver has met of one connection, beside what the data path counts per device.
#pragma once

#include <cstdint>

namespace rnic::framing {

/// Only what does not go straight to its place at the delivery point touches it.
struct ReceiverStats {
  uint64_t placed_early = 0;       ///< octets placed out of order
  uint64_t held = 0;               ///< octets copied to hold space
  uint64_t dropped_damaged = 0;    ///< segments dropped before commit: a CRC was wrong
  uint64_t dropped_suspected = 0;  ///< segments dropped before commit on suspicion
  uint64_t dropped_no_room = 0;    ///< segments dropped before commit: no hold space
};

}  // namespace rnic::framing

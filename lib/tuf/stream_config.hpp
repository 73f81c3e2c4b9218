/// \file
/// The configuration of a framed stream.
#pragma once

#include <cstdint>

#include "rnic/framing_options.hpp"
#include "tuf/modes.hpp"

namespace rnic::tuf {

struct StreamConfig {
  /// Its modes and keys are ignored: set_send_mode() and set_receive_mode() set them.
  FramingOptions framing;
  uint32_t ring_octets = 256u << 10;  ///< size of the ring of each direction; at least kRingMin
};
/// The least size of a ring: it holds the longest PDU with its markers, and one that is being read.
inline constexpr uint32_t kRingMin = 128u << 10;

/// Memory of the caller for the rings, StreamConfig::ring_octets each; outlives the stream.
struct StreamRings {
  uint8_t* send = nullptr;
  uint8_t* receive = nullptr;
};

}  // namespace rnic::tuf

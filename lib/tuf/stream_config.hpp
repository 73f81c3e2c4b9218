/// \file
/// The configuration of a framed stream.
#pragma once

#include <cstdint>

#include "rnic/framing_options.hpp"
#include "tuf/modes.hpp"

namespace rnic::tuf {

struct StreamConfig {
  FramingOptions framing;  ///< its modes and keys are set by set_send_mode(), set_receive_mode()
  uint32_t ring_octets = 256u << 10;  ///< each way; at least kRingMin
};
/// A ring holds the longest PDU with its markers, and one that is being read.
inline constexpr uint32_t kRingMin = 128u << 10;

/// Memory of somebody else's for the rings, StreamConfig::ring_octets each; outlives the stream.
struct StreamRings {
  uint8_t* send = nullptr;
  uint8_t* receive = nullptr;
};

}  // namespace rnic::tuf

/// \file
/// The configuration of ULP framing under DDP on one connection.
#pragma once

#include <cstdint>

#include "framing/config.hpp"
#include "tuf/modes.hpp"
#include "wire/tuf.hpp"

namespace rnic::tuf {

/// Each field is a run-time option.
struct Config : framing::Config {
  bool align_receive = true;  ///< ask the peer for alignment mode, if the transport shows segments
  bool markers_receive = true;  ///< ask the peer for marker mode, when it has no alignment mode
  bool packing = true;          ///< several DDP segments in a framing PDU, when the peer agrees
  uint16_t marker_interval = kIntervalDefault;  ///< interval that the peer is asked for, octets
  uint32_t max_pdu = wire::kTufPduMax;  ///< longest PDU asked of the peer, marker mode, octets
  uint32_t middlebox_limit = 4096;      ///< see AlignmentWatch; 0: off
};
/// Least marker interval under DDP, octets.
inline constexpr uint16_t kSessionIntervalMin = 512;

}  // namespace rnic::tuf

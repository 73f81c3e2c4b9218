/// \file
/// What a framed stream is made with.
#pragma once

#include <cstdint>

#include "tuf/modes.hpp"

namespace rnic::tuf {

struct StreamConfig {
  PduFormat format = PduFormat::length_first();
  bool packing = true;              ///< several PDUs in a framing PDU (s.5; appendix A.4)
  bool emergency = false;           ///< PDUs up to 512 octets below an EMSS of 512 (appendix A.5)
  bool emsgsize_on_growth = false;  ///< the next send() says EMSGSIZE once (appendix A.2)
  uint32_t max_pdu = wire::kTufPduMax;           ///< marker mode, either way, octets
  uint16_t send_interval = kIntervalDefault;     ///< octets (appendix A.6)
  uint16_t receive_interval = kIntervalDefault;  ///< octets (appendix A.7)
  uint32_t middlebox_limit = 4096;               ///< see AlignmentWatch; 0: off
  uint32_t ring_octets = 256u << 10;             ///< each way; at least kRingMin
};
/// A ring holds the longest PDU with its markers, and one that is being read.
inline constexpr uint32_t kRingMin = 128u << 10;

/// Memory of somebody else's for the rings, StreamConfig::ring_octets each; outlives the stream.
struct StreamRings {
  uint8_t* send = nullptr;
  uint8_t* receive = nullptr;
};

}  // namespace rnic::tuf

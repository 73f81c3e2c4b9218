/// \file
/// Counters of the planned faults of frames.
#pragma once

#include "base/counters.hpp"

#define RNIC_FAULTS_COUNTERS(X)                                                          \
  X(frames, "frames", "taken from above")                                                \
  X(connections, "connections", "followed from their SYN on")                            \
  X(fpdus, "FPDUs", "followed to their end, each once")                                  \
  X(fpdus_dropped, "FPDUs", "not sent the first time")                                   \
  X(frames_dropped, "frames", "not sent: they had such octets alone")                    \
  X(frames_cut, "frames", "sent without such octets")                                    \
  X(crcs_spoiled, "FPDUs", "given a wrong CRC")                                          \
  X(bad_crcs_sent, "CRCs", "sent wrong, retransmissions included")                       \
  X(lost_track, "connections", "not followed any more: too many, or an octet went past") \
  X(no_buffer, "frames", "not sent at all: the port below had no buffer for a part")     \
  X(retries, "events", "times the port below took less than offered")

namespace rnic::faults {

RNIC_DEFINE_COUNTERS(FaultCounters, RNIC_FAULTS_COUNTERS)

}  // namespace rnic::faults

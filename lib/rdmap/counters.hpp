/// \file
/// Counters of DDP and RDMAP, per device.
#pragma once

#include "base/counters.hpp"

#define RNIC_RDMAP_COUNTERS(X)                                                          \
  X(segments_out, "segments", "DDP segments built for the first time")                  \
  X(messages_out, "messages", "RDMAP messages sent completely")                         \
  X(octets_out, "octets", "payload octets sent for the first time")                     \
  X(segments_placed, "segments", "DDP segments placed")                                 \
  X(octets_placed, "octets", "payload octets written to registered memory")             \
  X(placements_postponed, "segments", "out-of-order segments whose check failed: held") \
  X(writes_in, "messages", "RDMA Writes delivered")                                     \
  X(sends_in, "messages", "Sends delivered")                                            \
  X(read_requests_in, "messages", "Read Requests delivered")                            \
  X(read_responses_in, "messages", "Read Responses delivered")                          \
  X(terminates_in, "messages", "Terminate messages received")                           \
  X(terminates_out, "messages", "Terminate messages sent")                              \
  X(malformed_terminates, "messages", "Terminate messages that could not be decoded")   \
  X(faults, "errors", "errors found in what the peer sent")                             \
  X(flushed, "work requests", "completed with Flushed")

namespace rnic::rdmap {

RNIC_DEFINE_COUNTERS(Counters, RNIC_RDMAP_COUNTERS)

}  // namespace rnic::rdmap

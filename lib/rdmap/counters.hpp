/// \file
/// Counters of DDP and RDMAP, per device.
#pragma once

#include "base/counters.hpp"

#define RNIC_RDMAP_COUNTERS(X)                                                             \
  X(segments_out, "segments", "DDP segments built for the first time")                     \
  X(messages_out, "messages", "RDMAP messages sent completely")                            \
  X(octets_out, "octets", "payload octets sent for the first time")                        \
  X(segments_placed, "segments", "DDP segments placed")                                    \
  X(octets_placed, "octets", "payload octets written to registered memory")                \
  X(placements_postponed, "segments", "out-of-order segments whose check failed: held")    \
  X(writes_in, "messages", "RDMA Writes delivered")                                        \
  X(sends_in, "messages", "Sends delivered")                                               \
  X(read_requests_in, "messages", "Read Requests delivered")                               \
  X(read_responses_in, "messages", "Read Responses delivered")                             \
  X(atomics_in, "messages", "Atomic Requests carried out")                                 \
  X(atomic_responses_in, "messages", "Atomic Responses delivered")                         \
  X(immediates_in, "messages", "Immediate Data messages delivered")                        \
  X(receive_waits, "messages", "found no receive posted, and waited for one")              \
  X(receive_waits_expired, "messages", "waited until the limit, and found none")           \
  X(local_invalidations, "regions", "STags invalidated by their own side's work")          \
  X(windows_bound, "windows", "memory windows of type 2 bound")                            \
  X(fast_registrations, "regions", "registered by work requests")                          \
  X(rtrs_out, "messages", "RTR indications sent (RFC 6581)")                               \
  X(nudges_out, "messages", "zero-length Writes to peers that were silent from the start") \
  X(responses_stalled, "messages", "answered later because of a planned fault")            \
  X(terminates_planned, "messages", "Terminates because of a planned fault")               \
  X(terminates_in, "messages", "Terminate messages received")                              \
  X(terminates_out, "messages", "Terminate messages sent")                                 \
  X(malformed_terminates, "messages", "Terminate messages that could not be decoded")      \
  X(siw_terminates, "messages", "Terminates read in Linux siw's order of bits")            \
  X(faults, "errors", "errors found in what the peer sent")                                \
  X(faults_protection, "errors", "Terminate: RDMAP remote protection errors")              \
  X(faults_operation, "errors", "Terminate: RDMAP remote operation errors")                \
  X(faults_tagged, "errors", "Terminate: DDP tagged buffer errors")                        \
  X(faults_untagged, "errors", "Terminate: DDP untagged buffer errors")                    \
  X(faults_local, "errors", "Terminate: local catastrophic errors")                        \
  X(faults_llp, "errors", "errors of the framing below, an end inside an FPDU included")   \
  X(flushed, "work requests", "completed with Flushed")

namespace rnic::rdmap {

RNIC_DEFINE_COUNTERS(Counters, RNIC_RDMAP_COUNTERS)

}  // namespace rnic::rdmap

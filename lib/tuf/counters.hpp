/// \file
/// Counters of ULP framing, per device.
#pragma once

#include <atomic>
#include <cstdint>

#include "base/counters.hpp"

#define RNIC_TUF_COUNTERS(X)                                                                       \
  X(pdus_out, "PDUs", "ULP PDUs sent for the first time")                                          \
  X(frames_out, "frames", "framing PDUs built for the first time (alignment mode)")                \
  X(packed_pdus_out, "PDUs", "of the ULP PDUs, those that went into a framing PDU with others")    \
  X(frames_rebuilt, "records", "built again for a retransmission")                                 \
  X(frames_cut, "frames", "framing PDUs that did not fit a segment (emergency, smaller EMSS)")     \
  X(lookalikes_avoided, "segments", "pieces made one octet shorter: they looked like a whole one") \
  X(markers_out, "markers", "markers sent for the first time")                                     \
  X(message_size_errors, "errors", "PDUs refused because of their size (EMSGSIZE)")                \
  X(emss_notices, "events", "changes of EMSS told to the ULP")                                     \
  X(pdus_in, "PDUs", "ULP PDUs delivered")                                                         \
  X(aligned_segments_in, "segments", "received with exactly one framing PDU")                      \
  X(unaligned_segments_in, "segments", "received in alignment mode with anything else")            \
  X(middlebox_suspected, "events", "long runs without an aligned segment: something resegments")   \
  X(placed_in_order_octets, "octets", "stream octets placed at the delivery point on arrival")     \
  X(placed_early_octets, "octets", "stream octets placed out of order on arrival")                 \
  X(held_octets, "octets", "stream octets copied to hold space, in all")                           \
  X(hold_refused, "segments", "dropped before commit: no hold space")                              \
  X(bad_key_errors, "errors", "stream broken: a framing PDU with a wrong key")                     \
  X(bad_length_errors, "errors", "stream broken: lengths that do not fit together")                \
  X(bad_marker_errors, "errors", "stream broken: a marker that points elsewhere")                  \
  X(pdu_too_long_errors, "errors", "stream broken: a PDU longer than agreed")                      \
  X(starts, "events", "negotiations that succeeded")                                               \
  X(start_failures, "events", "negotiations that failed")                                          \
  X(start_rejects, "events", "negotiations rejected, by the peer or by this side")                 \
  X(discarded_octets, "octets", "received after an error, thrown away")

namespace rnic::tuf {

RNIC_DEFINE_COUNTERS(Counters, RNIC_TUF_COUNTERS)

/// Increments a counter from the application side of a framed stream, where several threads may do
/// so at once.
inline void count_shared(uint64_t& counter) {
  std::atomic_ref(counter).fetch_add(1, std::memory_order_relaxed);
}

}  // namespace rnic::tuf

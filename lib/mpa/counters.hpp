/// \file
/// Counters of the MPA layer, per device.
#pragma once

#include "base/counters.hpp"

#define RNIC_MPA_COUNTERS(X)                                                                   \
  X(fpdus_out, "FPDUs", "FPDUs built for the first time")                                      \
  X(fpdus_rebuilt, "FPDUs", "FPDUs built again for a retransmission")                          \
  X(markers_out, "markers", "markers sent, retransmissions included")                          \
  X(fpdus_in, "FPDUs", "FPDUs delivered")                                                      \
  X(placed_in_order_octets, "octets", "stream octets placed at the delivery point on arrival") \
  X(placed_early_octets, "octets", "stream octets placed out of order on arrival")             \
  X(held_octets, "octets", "stream octets copied to hold space, in all")                       \
  X(hold_refused, "segments", "dropped before commit: no hold space")                          \
  X(crc_drops, "segments", "dropped before commit: CRC of an FPDU in it failed (silent drop)") \
  X(suspicious_drops, "segments", "dropped before commit: an FPDU cut, or its length damaged") \
  X(crc_errors, "errors", "error 2 reported: CRC mismatch at the delivery point")              \
  X(marker_errors, "errors", "error 3 reported: marker and length disagree")                   \
  X(start_failures, "events", "start-ups that failed (error 4 and the rest)")                  \
  X(start_bad_frames, "events", "of these: no MPA start frame, or one that is impossible")     \
  X(start_timeouts, "events", "of these: not finished in time")                                \
  X(start_ends, "events", "of these: the stream ended first")                                  \
  X(start_rejects, "events", "start-ups rejected, by the peer or by this side")                \
  X(start_terminates, "errors", "errors 5 to 7: the Reply could not be met")                   \
  X(starts_revision_0, "events", "start-ups of revision 0 (draft-00) that succeeded")          \
  X(starts_revision_1, "events", "start-ups of revision 1 (RFC 5044) that succeeded")          \
  X(starts_revision_2, "events", "start-ups of revision 2 (RFC 6581) that succeeded")          \
  X(starts_peer_to_peer, "events", "of these, with an RTR")                                    \
  X(rtr_missing, "events", "responder: the RTR did not come in time")                          \
  X(first_fpdus_delayed, "events", "initiator: the first FPDU was held back on purpose")       \
  X(discarded_octets, "octets", "received after an error or a Terminate, thrown away")

namespace rnic::mpa {

RNIC_DEFINE_COUNTERS(Counters, RNIC_MPA_COUNTERS)

}  // namespace rnic::mpa

/// \file
/// Counters of the TCP engine.
#pragma once

#include "base/counters.hpp"

#define RNIC_TCP_COUNTERS(X)                                                                     \
  X(segments_in, "segments", "received segments, all")                                           \
  X(predicted_in, "segments", "of these, taken by header prediction")                            \
  X(segments_out, "segments", "segments sent, all")                                              \
  X(data_segments_out, "segments", "segments with payload, first transmissions")                 \
  X(aligned_segments_out, "segments", "of these, begin and end at a record boundary")            \
  X(records_out, "records", "records pulled from the upper layer")                               \
  X(octets_out, "octets", "payload octets sent for the first time")                              \
  X(retransmitted_segments, "segments", "segments sent again")                                   \
  X(retransmitted_octets, "octets", "payload octets sent again")                                 \
  X(fast_recoveries, "events", "loss recoveries entered by SACK or duplicate ACKs")              \
  X(timeouts, "events", "retransmission time-outs")                                              \
  X(ecn_connections, "connections", "agreed on ECN (RFC 3168)")                                  \
  X(ecn_fallbacks, "connections", "SYN sent again without asking for ECN")                       \
  X(ce_in, "segments", "data with a congestion mark (CE) received")                              \
  X(ece_in, "segments", "ECN-Echo received")                                                     \
  X(cwr_in, "segments", "CWR received")                                                          \
  X(cwr_out, "segments", "CWR sent")                                                             \
  X(ecn_reductions, "events", "window reduced for ECN-Echo, once a window of data")              \
  X(ecn_holds, "events", "ECN-Echo met a window of one segment: nothing sent for an RTO")        \
  X(ce_change_acks, "segments", "DCTCP: ACKs sent for what came before a change of CE")          \
  X(ce_changes_merged, "events", "DCTCP: more changes of CE in a burst than can be told")        \
  X(spurious_timeouts, "events", "time-outs found to have been for nothing, and undone")         \
  X(frto_undos, "events", "of the undone: found by F-RTO (RFC 5682)")                            \
  X(eifel_undos, "events", "of the undone: found by timestamps (RFC 4015)")                      \
  X(dsack_undos, "events", "of the undone: found by D-SACK (RFC 2883)")                          \
  X(hystart_css, "events", "conservative slow start begun: the RTT rose (RFC 9406)")             \
  X(hystart_resumed, "events", "conservative slow start given up: the RTT fell again")           \
  X(hystart_exits, "events", "slow start left by HyStart++")                                     \
  X(idle_restarts, "events", "window back to the initial one after idleness (RFC 5681 s.4.1)")   \
  X(pacing_waits, "events", "a segment waited for its time to leave")                            \
  X(octets_in, "octets", "payload octets committed")                                             \
  X(out_of_order_octets_in, "octets", "payload octets committed ahead of the delivery point")    \
  X(duplicate_octets_in, "octets", "payload octets received that were already committed")        \
  X(inspect_drops, "segments", "segments dropped or cut short on the upper layer's verdict")     \
  X(acks_in, "segments", "segments without payload received")                                    \
  X(acks_out, "segments", "segments without payload sent")                                       \
  X(part_acks_out, "segments", "of these, for the first part of a burst behind a hole")            \
  X(repeated_acks_out, "segments", "of these, said again: nothing followed them, behind a hole") \
  X(checksum_errors, "segments", "dropped: TCP checksum wrong")                                  \
  X(malformed, "segments", "dropped: header or option lengths impossible")                       \
  X(paws_rejected, "segments", "dropped: timestamp too old (RFC 7323 s.5)")                      \
  X(unacceptable, "segments", "outside the receive window, answered with an ACK")                \
  X(no_connection, "segments", "for no connection, answered with RST")                           \
  X(not_at_home, "segments", "for no connection: another queue of the device has them")          \
  X(resets_in, "segments", "valid RST received")                                                 \
  X(resets_out, "segments", "RST sent")                                                          \
  X(challenge_acks, "segments", "challenge ACKs sent (RFC 5961)")                                \
  X(challenge_acks_limited, "events", "challenge ACKs not sent: rate limit")                     \
  X(window_probes, "segments", "zero-window probes sent")                                        \
  X(resegmented_records, "records", "records cut over several segments")                         \
  X(send_waits, "events", "output stopped: port full or no buffer")                              \
  X(record_limit_waits, "events", "pulling stopped: too many unacknowledged records")            \
  X(commit_full, "segments", "dropped: too many separate out-of-order ranges")                   \
  X(range_sets_exhausted, "segments", "dropped: too many connections with holes")                \
  X(syn_dropped, "segments", "SYN dropped: half-open or connection limit")                       \
  X(half_open_displaced, "connections", "half open, let go for newer ones (no SYN cookies)")     \
  X(places_made, "connections", "given up by the acceptor: max_connections was reached")         \
  X(syn_cookies_sent, "segments", "SYN-ACKs with a cookie: too many half-open connections")      \
  X(syn_cookies_accepted, "connections", "opened by the echo of a cookie")                       \
  X(syn_cookies_rejected, "segments", "ACK to a listener that is no cookie of ours, or too old") \
  X(keep_alive_probes, "segments", "keep-alive probes sent (RFC 9293 s.3.8.4)")                  \
  X(keep_alive_timeouts, "connections", "ended: keep-alive probes without an answer")            \
  X(path_doubts, "events", "R1: told the IP layer that a path may be broken")                    \
  X(urgent_in, "events", "urgent pointers that moved forward")                                   \
  X(half_duplex_resets, "connections", "reset: octets for a closed reader (RFC 9293 MAY-1)")     \
  X(icmp_in, "messages", "ICMP errors handed to TCP")                                            \
  X(icmp_ignored, "messages", "ICMP: source quench, or an MTU that cannot be")                   \
  X(icmp_unmatched, "messages", "ICMP: quotes no connection")                                    \
  X(icmp_unverified, "messages", "ICMP: quotes a sequence number that is not in flight")         \
  X(icmp_soft, "messages", "ICMP: unreachable, noted; the connection stays (RFC 5927 s.5.2)")    \
  X(icmp_hard, "messages", "ICMP: unreachable for good, connection not opened")                  \
  X(path_mtu_reductions, "events", "path MTU lowered by ICMP")                                   \
  X(black_holes, "events", "segment size lowered: full segments vanish")                         \
  X(mtu_probes, "segments", "larger segments sent to find the path MTU")                         \
  X(mtu_probes_confirmed, "segments", "of these, arrived")                                       \
  X(mtu_probes_lost, "segments", "of these, lost")                                               \
  X(time_wait_displaced, "connections", "left TIME-WAIT early: the table was full")              \
  X(time_wait_reused, "connections", "left TIME-WAIT early for an active open")                  \
  X(time_wait_reopened, "connections", "left TIME-WAIT early for a SYN (RFC 6191)")              \
  X(connections_opened, "connections", "reached ESTABLISHED")                                    \
  X(connections_closed, "connections", "ended, any way")                                         \
  X(connections_timed_out, "connections", "ended by R2 or the connect time-out")                 \
  X(orphans_aborted, "connections", "closed by the user, and then nothing acknowledged for long")

namespace rnic::tcp {

RNIC_DEFINE_COUNTERS(Counters, RNIC_TCP_COUNTERS)

}  // namespace rnic::tcp

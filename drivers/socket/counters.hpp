/// \file
/// Counters of the socket driver, per device.
#pragma once

#include "base/counters.hpp"

#define RNIC_SOCKET_COUNTERS(X)                                                             \
  X(connects, "connections", "active opens begun")                                          \
  X(accepts, "connections", "taken from a listening socket and kept")                       \
  X(accepts_refused, "connections", "taken and reset: the device did not want them")        \
  X(accepts_deferred, "events", "left in the backlog: no connection or descriptor is free") \
  X(places_made, "connections", "given up by the device: no place or descriptor was free")  \
  X(accept_errors, "events", "the system gave no connection although it told of one")       \
  X(established, "connections", "reached the established state")                            \
  X(closed, "connections", "ended by FIN in both directions")                               \
  X(aborted, "connections", "reset by us")                                                  \
  X(resets_in, "connections", "reset by the peer")                                          \
  X(refused, "connections", "active opens that a RST answered")                             \
  X(unreachable, "connections", "no way to the peer, says the network")                     \
  X(timed_out, "connections", "opening, sending or closing took too long")                  \
  X(options_refused, "connections", "the system has not taken all options chosen for them")  \
  X(errors, "connections", "ended by any other error of the system; the log names it")      \
  X(octets_in, "octets", "read from the system")                                            \
  X(octets_out, "octets", "taken by the system")                                            \
  X(records_out, "records", "pulled: FPDUs and start-up frames")                            \
  X(segments_out, "segments", "segments' worths of whole records given to the system")      \
  X(reads, "calls", "recv() that brought octets")                                           \
  X(peeks, "calls", "recv() that only looked: hold space was short")                        \
  X(writes, "calls", "sendmsg() and sendmmsg() that took octets")                           \
  X(partial_writes, "calls", "of these, those that left a rest for later")                  \
  X(send_waits, "events", "the system's send buffer was full")                              \
  X(receive_waits, "events", "octets were left with the system: no room above")             \
  X(emss_changes, "events", "EMSS changed on a connection in use")                          \
  X(emss_unknown, "connections", "the system told no segment size: MTU or default used")    \
  X(half_closes, "connections", "FIN sent while the peer could still send")

namespace rnic::socket {

RNIC_DEFINE_COUNTERS(Counters, RNIC_SOCKET_COUNTERS)

}  // namespace rnic::socket

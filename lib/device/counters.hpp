/// \file
/// Counters of the device itself.
#pragma once

#include "base/counters.hpp"

#define RNIC_DEVICE_COUNTERS(X)                                                               \
  X(connect_requests, "events", "inbound connection requests handed to the application")      \
  X(requests_refused, "events", "inbound connections refused: a limit was reached")           \
  X(requests_beyond_backlog, "events", "inbound connections refused: ListenOptions::backlog")   \
  X(requests_beyond_quota, "events", "inbound connections refused: quotas.requests")            \
  X(requests_too_late, "events", "inbound connections refused: their consumer listens no more") \
  X(requests_beyond_peer, "events", "inbound connections refused: limits.peer_connections")      \
  X(first_fpdus_overdue, "connections", "a request waited for the peer's first FPDU too long")  \
  X(starts_displaced, "connections", "inbound, let go for others before a Request was whole") \
  X(silent_displaced, "connections", "established, let go for others: limits.silence")        \
  X(lingering_reset, "connections", "failed start-ups reset before they had closed: places")  \
  X(requests_unheard, "events", "rejected: half of the event queue was full")                 \
  X(connections_established, "connections", "reached full operation")                         \
  X(connects_redialed, "connections", "tried again with revision 1 (RFC 6581 s.10)")          \
  X(connections_aborted, "connections", "ended by Device::abort()")                           \
  X(connects_failed, "connections", "ended before full operation")                            \
  X(completion_overruns, "completions", "lost because their queue was full")                  \
  X(events_lost, "events", "asynchronous events dropped: the application did not read them")  \
  X(regions_registered, "regions", "memory registrations")                                    \
  X(regions_reregistered, "regions", "memory registered anew under another key")              \
  X(regions_deregistered, "regions", "memory deregistrations")                                \
  X(windows_allocated, "windows", "memory windows allocated")                                 \
  X(windows_bound, "windows", "memory windows of type 1 bound")                               \
  X(windows_freed, "windows", "memory windows freed")                                         \
  X(streams_opened, "connections", "streaming sockets connected by us")                       \
  X(streams_accepted, "connections", "streaming sockets handed to a listener")                \
  X(streams_refused, "connections", "refused: backlog or limits.max_streams was full")        \
  X(stream_buffer_waits, "events", "no buffer for a streaming socket: limits.stream_octets")  \
  X(framed_opened, "connections", "framed streams connected by us")                           \
  X(framed_accepted, "connections", "framed streams handed to a listener")                    \
  X(framed_refused, "connections", "refused: backlog or limits.max_framed_streams was full")  \
  X(link_downs, "events", "times that the port's link was found down")                        \
  X(link_ups, "events", "times that it was found up again")                                   \
  X(ports_gone, "ports", "taken away from the device")                                        \
  X(overtaken_in, "segments", "put before others of their burst that had overtaken them")     \
  X(waited_in, "segments", "behind a hole, and taken a turn later, when it was filled or not") \
  X(starved_turns, "turns", "ended early: the machine had no memory for what came")           \
  X(starved_connections, "connections", "refused or ended: no memory for their start-up")     \
  X(starved_texts, "events", "given without their text or private data: no memory for them")  \
  X(polls, "polls", "turns of the worker loop")                                               \
  X(busy_polls, "polls", "turns that found frames or doorbells")

namespace rnic::device {

RNIC_DEFINE_COUNTERS(DeviceCounters, RNIC_DEVICE_COUNTERS)

}  // namespace rnic::device

/// \file
/// Asynchronous events: what happens without being asked for.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "base/slab.hpp"
#include "mpa/negotiation.hpp"
#include "rdmap/rdmap.hpp"
#include "rnic/address.hpp"

namespace rnic::device {

enum class EventKind : uint8_t {
  ConnectRequest,     ///< a peer wants a connection: answer with accept() or reject()
  Established,        ///< the queue pair is in full operation
  ConnectFailed,      ///< an active connect ended without a connection
  Rejected,           ///< the peer's application said no (private data says why)
  RequestWithdrawn,   ///< an unanswered request is gone
  RequestFailed,      ///< a peer connected without a good Request; there is nothing to answer
  PeerClosed,         ///< the peer has closed its direction gracefully
  Disconnected,       ///< the connection is gone; the queue pair has flushed
  TerminateSent,      ///< the peer broke a rule: see fault and detail
  TerminateReceived,  ///< the peer says that we broke a rule
  CompletionOverrun,  ///< a completion queue was too small; its queue pair was aborted
};

[[nodiscard]] const char* to_string(EventKind kind);

struct Event {
  EventKind kind = EventKind::Disconnected;
  uint32_t qp = 0;          ///< 0: none
  base::Handle connection;  ///< ConnectRequest, RequestWithdrawn
  Endpoint local;
  Endpoint remote;
  std::vector<uint8_t> private_data;  ///< ConnectRequest, Established, Rejected
  /// TerminateSent, TerminateReceived; the cause of ConnectFailed, RequestFailed and Disconnected
  /// where it has a code: 2/0/1 when a connection in use was lost, 2/0/4 for a bad start frame.
  rdmap::Fault fault;
  StreamEnd end = StreamEnd::Closed;
  /// Established: all of it; ConnectRequest, Rejected: `revision` and `peer`.
  mpa::Negotiated agreed;
  std::string detail;  ///< one line: cause and, where there is one, remedy
};

}  // namespace rnic::device

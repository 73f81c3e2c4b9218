/// \file
/// Plain values of the public API: rights, events, counters.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "rnic/access.hpp"
#include "rnic/trace.hpp"
#include "rnic/transport.hpp"
#include "rnic/work.hpp"

namespace rnic {

inline constexpr uint32_t kMaxPrivateData = 508;  ///< octets that every revision but 0 carries
/// As an IRD or ORD: not agreed in the start-up, the applications do that (RFC 6581 s.9.1).
inline constexpr uint32_t kReadsByApplication = 0x3fff;

enum class EventKind : uint8_t {
  ConnectRequest,    ///< answer with QueuePair::accept() or Device::reject(). While half of the
                     ///< queue of events is full peers are rejected instead.
  Established,       ///< the queue pair is in full operation
  ConnectFailed,     ///< an active connect ended without a connection
  Rejected,          ///< the peer's application said no (see private_data); Disconnected follows
  RequestWithdrawn,  ///< an unanswered request is gone. Left out while half of the queue is full:
                     ///< answering says NotFound.
  RequestFailed,     ///< a peer connected without a good Request: fault and detail say why; nothing
                     ///< is to be done. Left out while a quarter of the queue of events is full.
  PeerClosed,        ///< the peer has closed its direction gracefully
  Disconnected,      ///< the connection is gone, everything outstanding has completed
  TerminateSent,     ///< the peer broke a rule
  TerminateReceived,  ///< the peer says that we broke a rule
  CompletionOverrun,  ///< a completion queue was too small; its queue pair was aborted. Once until
                      ///< that queue is polled.
};
[[nodiscard]] const char* to_string(EventKind kind);

/// Names a connection request until it is answered.
struct RequestHandle {
  uint32_t index = UINT32_MAX;
  uint32_t generation = 0;
};

/// Layer, type and code of a Terminate message (RFC 5040 s.4.8).
struct Fault {
  uint8_t layer = 0;
  uint8_t type = 0;
  uint8_t code = 0;
};

/// How one connection is set up. What is not said comes from the configuration (`framing`, `mpa.*`)
/// and the queue pair.
struct ConnectOptions {
  std::optional<uint8_t> revision;  ///< connect: MPA revision, 0 to 2; not with ULP framing
  /// connect: agree on IRD and ORD (revision 2, or ULP framing, which does by default)
  std::optional<bool> exchange_reads;
  /// connect: either side may send first (revision 2; with ULP framing it always may)
  std::optional<bool> peer_to_peer;
  std::optional<uint32_t> ird;     ///< inbound Reads at once; not above the queue pair's
  std::optional<uint32_t> ord;     ///< outbound Reads at once; not above the queue pair's
  std::optional<bool> packing;     ///< several FPDUs in one segment; tcp.pack_records says it
                                   ///< for connections that do not
  std::optional<bool> nagle;       ///< small messages wait while a short segment is not
                                   ///< acknowledged, to share one; likewise tcp.nagle
  uint32_t ord_required = 0;       ///< accept: a peer that can take less is rejected
  std::optional<Framing> framing;  ///< connect: what the peer listens with
};

/// What a start-up has agreed on.
struct ConnectionFacts {
  uint8_t revision = 1;  ///< of MPA; with 0 DDP and RDMAP have version 0, too
  bool crc = true;
  bool markers_out = false;
  bool markers_in = false;
  bool peer_to_peer = false;  ///< an RTR was sent
  // Nothing where they were not exchanged.
  std::optional<uint32_t> ird;       ///< inbound Reads in force
  std::optional<uint32_t> ord;       ///< outbound Reads in force
  std::optional<uint32_t> peer_ird;  ///< as the peer told it; kReadsByApplication
  std::optional<uint32_t> peer_ord;  ///< as the peer told it; kReadsByApplication
};

struct Event {
  EventKind kind = EventKind::Disconnected;
  uint32_t qp = 0;                    ///< QueuePair::number(); 0: none
  RequestHandle request;              ///< ConnectRequest, RequestWithdrawn
  std::string remote;                 ///< "10.0.0.2:7471"
  std::vector<uint8_t> private_data;  ///< ConnectRequest, Established, Rejected
  /// TerminateSent, TerminateReceived; the cause of ConnectFailed, RequestFailed and Disconnected
  /// where it has a code: 2/0/1 when a connection in use was lost, 2/0/4 for a bad start frame.
  Fault fault;
  /// Established: all of it; ConnectRequest and Rejected: what the peer's start frame says.
  ConnectionFacts facts;
  std::string detail;  ///< one line: cause and, where there is one, remedy
};

struct Counter {
  std::string layer;  ///< port, net, tcp, mpa, rdmap, device, impair, capture
  std::string name;
  std::string unit;
  std::string help;
  uint64_t value = 0;
};

}  // namespace rnic

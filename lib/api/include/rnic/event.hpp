/// \file
/// Asynchronous events: what happens to a device without being asked for.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "rnic/address.hpp"
#include "rnic/connection.hpp"
#include "rnic/fault.hpp"
#include "rnic/transport.hpp"

namespace rnic {

namespace event {

/// What every event says.
struct Common {
  uint32_t qp = 0;  ///< QueuePair::number(); 0: the connection has no queue pair
  Endpoint local;
  Endpoint remote;
  std::string detail;  ///< one line: cause and, where there is one, remedy
  /// The application's own pointer to what the event is about: the queue pair's where it has one,
  /// else that of what is named. nullptr where none was given.
  void* context = nullptr;
};

/// Why a connection, or the attempt at one, has ended.
struct Ending : Common {
  /// Where the cause has a code: 2/0/1 when a connection in use was lost, 2/0/4 for a bad start
  /// frame.
  std::optional<Fault> fault;
  StreamEnd end = StreamEnd::Closed;  ///< what became of the TCP connection
};

/// A peer wants a connection: answer with QueuePair::accept() or Device::reject(). While half of
/// the queue of events is full peers are rejected instead.
struct ConnectRequest : Common {
  RequestHandle request;
  std::vector<uint8_t> private_data;
  ConnectionFacts facts;  ///< what the peer's start frame says: revision, peer_ird, peer_ord
};

/// The queue pair is in full operation.
struct Established : Common {
  std::vector<uint8_t> private_data;  ///< initiator: of the peer's answer
  ConnectionFacts facts;
};

/// An active connect ended without a connection.
struct ConnectFailed : Ending {};

/// The peer's application said no. Disconnected follows.
struct Rejected : Common {
  std::vector<uint8_t> private_data;
  ConnectionFacts facts;  ///< what the peer's start frame says: revision, peer_ird, peer_ord
};

/// A request that was not answered is gone. Left out while half of the queue of events is full:
/// answering says NotFound.
struct RequestWithdrawn : Ending {
  RequestHandle request;
};

/// A peer connected without a good Request; there is nothing to answer. Left out while a quarter of
/// the queue of events is full.
struct RequestFailed : Ending {};

/// The peer has closed its direction gracefully.
struct PeerClosed : Common {};

/// The connection is gone, everything outstanding has completed: the last event of this connection.
/// Its cause is the first one that there was, also where another event has told of it.
struct Disconnected : Ending {
  QueuePairError error = QueuePairError::None;
};

/// The peer broke a rule. Everything outstanding has completed; Disconnected follows.
struct TerminateSent : Common {
  Fault fault;
  QueuePairError error = QueuePairError::Fatal;  ///< never None
};

/// The peer says that we broke a rule. Everything outstanding has completed; Disconnected follows.
struct TerminateReceived : Common {
  Fault fault;
};

/// A completion queue was too small; its queue pair was aborted. Once until that queue is polled.
struct CompletionOverrun : Common {};

}  // namespace event

using Event = std::variant<event::ConnectRequest, event::Established, event::ConnectFailed,
                           event::Rejected, event::RequestWithdrawn, event::RequestFailed,
                           event::PeerClosed, event::Disconnected, event::TerminateSent,
                           event::TerminateReceived, event::CompletionOverrun>;

namespace event {

/// What the event says as every other does.
[[nodiscard]] const Common& common(const Event& event);
[[nodiscard]] Common& common(Event& event);
/// The fault that the event tells of; nullptr: it tells of none.
[[nodiscard]] const Fault* fault(const Event& event);
/// "connect request", "established"
[[nodiscard]] const char* to_string(const Event& event);

}  // namespace event

}  // namespace rnic

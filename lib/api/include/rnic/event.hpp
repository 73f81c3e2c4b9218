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
  void* device_context = nullptr;  ///< Device::set_context()
};

/// Which listener a peer's request came to.
struct Listened {
  /// What Device::listen() was called with. Of port 0: the connection was a stream before, or
  /// nobody listens there any more.
  Endpoint listener;
  void* listener_context = nullptr;  ///< ListenOptions::context
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
struct ConnectRequest : Common, Listened {
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

/// A request that was not answered is gone, or one that was accepted and did not become a
/// connection: then the event bears the number of its queue pair. One that was not answered is left
/// out while half of the queue of events is full: answering says NotFound.
struct RequestWithdrawn : Ending, Listened {
  RequestHandle request;
};

/// A peer connected without a good Request; there is nothing to answer. Left out while a quarter of
/// the queue of events is full.
struct RequestFailed : Ending, Listened {};

/// A request that was posted waits for the first FPDU of the peer, before which a responder may not
/// send (RFC 5044 s.7.1.2 rule 4), and has waited for mpa.rtr_timeout. Nothing has ended. Once a
/// connection.
struct FirstFpduOverdue : Common {};

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
  /// SendRequest::id of the request that it blames, one that has completed already included;
  /// nothing where it blames none, or it is not known which.
  std::optional<uint64_t> request;
};

/// A completion queue was full when a completion came: it is in error, and every queue pair that
/// completes there was aborted. Once a queue.
struct CompletionOverrun : Common {
  uint32_t cq = 0;             ///< CompletionQueue::number()
  void* cq_context = nullptr;  ///< CompletionQueueOptions::context
};

/// Fewer receives are posted to a shared receive queue than SharedReceiveQueue::arm_limit() said.
/// Once; it has to be armed again.
struct SrqLimitReached : Common {
  uint32_t srq = 0;             ///< SharedReceiveQueue::number()
  void* srq_context = nullptr;  ///< SharedReceiveQueueOptions::context
  uint32_t posted = 0;          ///< receives that nobody has taken
};

/// The queue pair has more receives of a shared receive queue in progress, begun and not delivered,
/// than SharedReceiveQueue::arm_high_water() said. Once a queue pair, until that is armed anew.
struct SrqHighWater : Common {
  uint32_t srq = 0;             ///< SharedReceiveQueue::number()
  void* srq_context = nullptr;  ///< SharedReceiveQueueOptions::context
  uint32_t in_progress = 0;
};

/// The queue pair has ended, and every receive that it took from its shared receive queue has
/// completed: it takes no more.
struct LastReceiveDone : Common {
  uint32_t srq = 0;             ///< SharedReceiveQueue::number()
  void* srq_context = nullptr;  ///< SharedReceiveQueueOptions::context
};

}  // namespace event

using Event =
    std::variant<event::ConnectRequest, event::Established, event::ConnectFailed, event::Rejected,
                 event::RequestWithdrawn, event::RequestFailed, event::FirstFpduOverdue,
                 event::PeerClosed, event::Disconnected, event::TerminateSent,
                 event::TerminateReceived, event::CompletionOverrun, event::SrqLimitReached,
                 event::SrqHighWater, event::LastReceiveDone>;

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

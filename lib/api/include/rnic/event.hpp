/// \file
/// Asynchronous events: what happens to a device without a call of the application.
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

/// The fields that every event has.
struct Common {
  uint32_t qp = 0;  ///< QueuePair::number(); 0: the connection has no queue pair
  Endpoint local;
  Endpoint remote;
  std::string detail;  ///< one line: cause and, where there is one, remedy
  /// The application's own pointer for the object that the event is about: the context of the queue
  /// pair if the event has one, else that of the object named. nullptr: the application gave none.
  void* context = nullptr;
  void* device_context = nullptr;  ///< Device::set_context()
};

/// The listener that a peer's request came to.
struct Listened {
  /// The endpoint given to Device::listen(). Port 0: the connection was a stream before, or nobody
  /// listens there any more.
  Endpoint listener;
  void* listener_context = nullptr;  ///< ListenOptions::context
};

/// Why a connection, or the attempt at one, has ended.
struct Ending : Common {
  /// The code of the cause, if it has one: 2/0/1 for a lost connection that was in use, 2/0/4 for a
  /// bad start frame.
  std::optional<Fault> fault;
  StreamEnd end = StreamEnd::Closed;  ///< what became of the TCP connection
};

/// A peer asks for a connection: answer with QueuePair::accept() or Device::reject(). While half of
/// the event queue is full, peers are rejected instead.
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

/// A request has gone before it was answered, or was accepted and did not become a connection; in
/// the second case the event has the number of its queue pair. While half of the event queue is
/// full, the event of an unanswered request is left out, and an answer returns NotFound.
struct RequestWithdrawn : Ending, Listened {
  RequestHandle request;
};

/// A peer connected and sent no valid Request; there is nothing to answer. The event is left out
/// while a quarter of the event queue is full.
struct RequestFailed : Ending, Listened {};

/// A posted work request has waited for mpa.rtr_timeout for the first FPDU of the peer, before
/// which a responder may not send (RFC 5044 s.7.1.2 rule 4). Nothing has ended. Comes once per
/// connection.
struct FirstFpduOverdue : Common {};

/// The peer has closed its direction gracefully.
struct PeerClosed : Common {};

/// The connection is gone and everything outstanding has completed. This is the last event of the
/// connection. It names the first cause of the end, even if another event has told of it.
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
  /// SendRequest::id of the request that the Terminate blames, which may have completed already;
  /// nothing: it blames none, or one that is not known.
  std::optional<uint64_t> request;
};

/// A completion queue was full when a completion came: the queue is in error, and the connection of
/// every queue pair that completes there was aborted. A queue pair without a connection stays as it
/// is, and is connected only after CompletionQueue::resize(). Comes once per queue, and again
/// after a resize.
struct CompletionOverrun : Common {
  uint32_t cq = 0;             ///< CompletionQueue::number()
  void* cq_context = nullptr;  ///< CompletionQueueOptions::context
};

/// Fewer receives are posted to a shared receive queue than the limit of
/// SharedReceiveQueue::arm_limit(). Comes once; then the limit has to be armed again.
struct SrqLimitReached : Common {
  uint32_t srq = 0;             ///< SharedReceiveQueue::number()
  void* srq_context = nullptr;  ///< SharedReceiveQueueOptions::context
  uint32_t posted = 0;          ///< receives that nobody has taken
};

/// The queue pair has more receives of a shared receive queue in progress (begun and not delivered)
/// than the mark of SharedReceiveQueue::arm_high_water(). Comes once per queue pair, until the mark
/// is armed again.
struct SrqHighWater : Common {
  uint32_t srq = 0;             ///< SharedReceiveQueue::number()
  void* srq_context = nullptr;  ///< SharedReceiveQueueOptions::context
  uint32_t in_progress = 0;
};

/// The queue pair has ended, and every receive that it took from its shared receive queue has
/// completed. It takes no more.
struct LastReceiveDone : Common {
  uint32_t srq = 0;             ///< SharedReceiveQueue::number()
  void* srq_context = nullptr;  ///< SharedReceiveQueueOptions::context
};

/// The link of the device's port is down: nothing is sent or received until PortUp. Connections are
/// left alone: TCP sends again, and they end by their time-outs. Once each time that the link is
/// found down; a device counts as up when it is opened.
struct PortDown : Common {};

/// The link of the device's port is up again. Once behind each PortDown, unless the device is gone.
struct PortUp : Common {};

/// The device's port was taken away: nothing is sent or received any more, and connections end by
/// their time-outs. The last event of the port's; a context that is opened anew may find the device
/// again.
struct DeviceFatal : Common {};

}  // namespace event

using Event =
    std::variant<event::ConnectRequest, event::Established, event::ConnectFailed, event::Rejected,
                 event::RequestWithdrawn, event::RequestFailed, event::FirstFpduOverdue,
                 event::PeerClosed, event::Disconnected, event::TerminateSent,
                 event::TerminateReceived, event::CompletionOverrun, event::SrqLimitReached,
                 event::SrqHighWater, event::LastReceiveDone, event::PortDown, event::PortUp,
                 event::DeviceFatal>;

namespace event {

/// The fields of the event that every event has.
[[nodiscard]] const Common& common(const Event& event);
[[nodiscard]] Common& common(Event& event);
/// The fault that the event reports; nullptr: it reports none.
[[nodiscard]] const Fault* fault(const Event& event);
/// The kind of event as a text: "connect request", "established".
[[nodiscard]] const char* to_string(const Event& event);

}  // namespace event

}  // namespace rnic

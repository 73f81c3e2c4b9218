/// \file
/// Layer `rdmap`: RFC 5040 and RFC 7306 over ddp (RFC 5041). One Endpoint is the protocol half of
/// one QP: Send queue, Receive queue, inbound Reads and atomics, Immediate Data, Terminate,
/// delivery and completion order.
///
/// The Endpoint lives on one worker. It is created before the connection, may be posted receives at
/// once, is bound to a framing when the connection is made, and ends in Closed or Error; another
/// connection on the same queues has another endpoint. It never frees user memory and never touches
/// it without mem::StagTable::access().
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>

#include "base/fail.hpp"
#include "base/time.hpp"
#include "llp/framing.hpp"
#include "mem/stag_table.hpp"
#include "rdmap/counters.hpp"
#include "rdmap/endpoint_state.hpp"
#include "rdmap/planned_faults.hpp"
#include "rdmap/receive_queue.hpp"
#include "rdmap/send_queue.hpp"
#include "rnic/connection.hpp"
#include "rnic/event.hpp"
#include "rnic/work.hpp"

namespace rnic::rdmap {

struct EndpointConfig {
  uint32_t qp = 0;
  uint32_t pd = 0;
  uint64_t stream = 0;     ///< mem::StagTable::new_stream(): it may use STags bound to it
  uint32_t ird = 16;       ///< inbound Reads and atomics at once (queue 1 buffers)
  uint32_t ord = 16;       ///< outbound Reads and atomics at once
  bool extensions = true;  ///< RFC 7306: atomics and Immediate Data, in both directions
  uint64_t secret = 0;     ///< unknown to the peer; see ddp::Coverage
  bool strict_sinks = false;  ///< a Read's sink has to have Access::RemoteWrite
  /// How long a message in order may wait for a receive (RFC 5041 s.7.1); 0: not at all.
  base::Duration receive_wait{0};
};

/// The outcome of the start-up.
struct Agreement {
  std::optional<uint32_t> ird{};  ///< inbound Reads; at most EndpointConfig::ird, or 1
  std::optional<uint32_t> ord{};  ///< outbound Reads; at most EndpointConfig::ord
  Rtr rtr_out = Rtr::None;        ///< initiator: goes out before every other message
  /// Responder: message 1 of queue 0 is a zero-length Send that takes no receive and completes
  /// nothing.
  bool send_rtr_in = false;
};

struct RequestStore;

/// The queues that the application posts to, and where the endpoints of a device have the requests
/// that are under way. They outlive the endpoint.
struct Queues {
  SendQueue& sends;
  ReceiveQueue& receives;
  RequestStore& requests;
};

/// Learns of the outcome of posted work. The place of a request in its queue is freed before the
/// owner learns of its completion, so that it may post from the call.
class EndpointOwner {
 public:
  virtual ~EndpointOwner() = default;
  virtual void send_completed(const Completion& completion) = 0;
  /// Does the same for a request of which there is nothing to tell but that it was carried out.
  virtual void send_succeeded(uint64_t id, Opcode opcode, uint32_t length, uint32_t qp) {
    send_completed({.id = id, .opcode = opcode, .length = length, .qp = qp});
  }
  virtual void receive_completed(const Completion& completion) = 0;
  /// The RTR was handed down: the connection is complete for the initiator.
  virtual void rtr_sent(base::Now now) = 0;
  /// With a shared receive queue: all receives that this stream took have completed, and it takes
  /// no more. Called once.
  virtual void last_receive_done() {}
  /// A message has begun to wait for a receive, until `deadline` at most. The owner calls resume()
  /// when a receive was posted, and at that time.
  virtual void receive_wait_began(base::Now deadline) { static_cast<void>(deadline); }
  /// A planned fault: a request of the peer is not to be answered before `until`, at which the
  /// owner calls answer_stalled().
  virtual void response_stalled(base::Now until) { static_cast<void>(until); }
  /// \param event without its queue pair and addresses. PeerClosed: the peer's FIN came at an FPDU
  /// boundary. TerminateSent: this side found the fault; TerminateReceived: the peer found it.
  /// Disconnected: with the first cause if there is one; a loss of the stream in use is 2/0/01,
  /// with a `rule` if the peer broke one. All but PeerClosed come when everything posted has
  /// completed.
  virtual void event(Event event, base::Now now) = 0;
};

class Endpoint {
 public:
  Endpoint(const EndpointConfig& config, mem::StagTable& memory, Counters& counters,
           EndpointOwner& owner, const Queues& queues);
  ~Endpoint();
  Endpoint(Endpoint&&) noexcept;
  Endpoint& operator=(Endpoint&&) noexcept;

  /// The FramingUser to give to mpa::Session::bind().
  [[nodiscard]] llp::FramingUser& framing_user();
  /// The memory that it works with. That of a Write which comes is the placement's alone.
  [[nodiscard]] llp::WorkingSet::Part working_part() const;
  /// The connection is made: from now on the endpoint calls `framing`, which must outlive the
  /// endpoint or end first.
  void bind(llp::Framing& framing, const Agreement& agreement = {});

  /// What this side does wrong on the connection; called before bind(). \param faults outlive the
  /// endpoint
  void plan(const EndpointFaults& faults);
  /// Commits a fault on the connection that there is. Unsupported: it is done to frames.
  /// WrongState: there is no connection, or the message or the request has gone by. Must not be
  /// called from within a call of the owner.
  Status commit(const PlannedFault& fault, base::Now now);
  /// Answers the requests of the peer whose time has come.
  void answer_stalled(base::Now now);

  /// Takes the posted work. A send completes with Flushed before the connection and after an error;
  /// a receive does so after an error.
  void serve();

  /// Goes on with a message that waits, if its receive is there or its time is over. Must not be
  /// called from within a call of the owner.
  void resume(base::Now now);
  /// \return whether a message waits for a receive
  [[nodiscard]] bool waits_for_receive() const;
  /// How many messages have waited for a receive, one that waits now included.
  [[nodiscard]] uint64_t receive_waits() const;

  /// Closes gracefully: FIN follows when everything posted was sent.
  void disconnect();
  /// Resets the stream and flushes everything that was posted.
  void abort();

  [[nodiscard]] EndpointState state() const;
  /// Inbound and outbound Reads and atomics at once: as configured, from bind() on as agreed.
  [[nodiscard]] uint32_t ird() const;
  [[nodiscard]] uint32_t ord() const;
  /// \return whether nothing is outstanding in either queue
  [[nodiscard]] bool idle() const;
  /// \return whether a work request of the Send queue has not completed, or a Response was asked
  /// for and has not been sent
  [[nodiscard]] bool has_work() const;
  /// \return whether a part of a message waits to be pulled
  [[nodiscard]] bool has_unsent() const;
  /// Work requests of the Send queue that have completed; wraps.
  [[nodiscard]] uint32_t sends_completed() const;
  /// Checks the invariants of the endpoint's queues. Called between its other calls.
  void validate() const;

 private:
  class Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace rnic::rdmap

/// \file
/// The inbound half of an Endpoint: it decides where segments are placed, and handles the messages
/// that they bring.
#pragma once

#include <array>
#include <cstdint>

#include "base/bytes.hpp"
#include "base/time.hpp"
#include "ddp/ddp.hpp"
#include "rdmap/completions.hpp"
#include "rdmap/counters.hpp"
#include "rdmap/deliveries.hpp"
#include "rdmap/life.hpp"
#include "rdmap/opcodes.hpp"
#include "rdmap/receive_queue.hpp"
#include "rdmap/receive_wait.hpp"
#include "rdmap/requester.hpp"
#include "rdmap/responder.hpp"
#include "rdmap/stream_memory.hpp"
#include "rnic/event.hpp"
#include "wire/terminate.hpp"

namespace rnic::rdmap {

/// Learns of what has come if more follows from it than the completion of a receive.
class InboundOwner {
 public:
  /// A Read or an atomic has its response.
  virtual void response_finished() = 0;
  /// The peer has sent a Terminate. \param event what it says, without the queue pair's identity
  virtual void terminate_received(event::TerminateReceived event, base::Now now) = 0;
  /// A message has begun to wait for a receive, and may wait until `deadline`.
  virtual void wait_began(base::Now deadline) = 0;
  /// A request of the peer is not to be answered before `until`.
  virtual void response_stalled(base::Now until) = 0;

 protected:
  ~InboundOwner() = default;
};

/// Checks the RDMAP header of each segment before it is placed, finds its buffer, and delivers
/// messages: requests of the peer to the Responder, responses to the Requester, all others to the
/// receive queue. The row of a message's opcode names the function of Deliveries that handles it.
class Inbound final : private Deliveries {
 public:
  /// The parts that this half works with. They outlive it.
  struct Links {
    const Life& life;
    ReceiveQueue& receives;
    Requester& requester;
    Responder& responder;
    Completions& completions;
    ddp::Stream& stream;
    Counters& counters;
    InboundOwner& owner;
  };
  struct Options {
    bool extensions = true;          ///< RFC 7306 is spoken
    base::Duration receive_wait{0};  ///< as EndpointConfig's
  };
  Inbound(const Options& options, const StreamMemory& memory, const Links& links);

  /// Begins a connection. \param send_rtr message 1 of queue 0 is the peer's RTR
  void begin(bool send_rtr);
  /// Takes the receives that were posted.
  void accept_posted();
  // These are about a message that waits for a receive.
  [[nodiscard]] const ReceiveWait& wait() const { return wait_; }
  /// How many messages have begun to wait.
  [[nodiscard]] uint64_t waits_begun() const { return waits_begun_; }
  /// \return whether there is a receive for the message, or it may wait no longer
  [[nodiscard]] bool may_resume(base::Now now) const;
  /// Nothing waits any more.
  void leave_wait();

  /// The RDMAP header of the Read Request in that segment, for a Terminate about it; empty if the
  /// segment has none.
  [[nodiscard]] base::ByteView read_request(const ddp::SegmentReport& segment) const;
  /// Our own buffer cannot take that segment (RDMAP-7.1-01). If it is the buffer of a receive, that
  /// receive completes with the error.
  void refuse_buffer(const ddp::SegmentReport& segment);

  // As in ddp::User.
  Fault tagged_target(const wire::DdpTaggedHeader& header, uint32_t payload,
                      ddp::TaggedTarget& out);
  Fault untagged_target(const wire::DdpUntaggedHeader& header, ddp::UntaggedTarget& out);
  bool find_buffer(const wire::DdpUntaggedHeader& header, uint32_t missing, bool in_order);
  bool waits_for_buffer(const wire::DdpUntaggedHeader& header, base::Now now);
  [[nodiscard]] bool may_wait(uint32_t segments) const {
    return wait_.is_allowed() && !receives_.covers(segments);
  }
  [[nodiscard]] bool may_wait(const wire::DdpUntaggedHeader& header) const {
    return header.qn == wire::kRdmapSendQn && wait_.is_allowed() &&
           !receives_.covers_msn(header.msn);
  }
  Fault deliver_tagged(const wire::DdpTaggedHeader& header, uint32_t payload);
  Fault deliver_untagged(const wire::DdpUntaggedHeader& header, uint64_t length, bool uniform,
                         const ddp::SegmentReport& segment, base::Now now);

  /// Checks the receive queue, and that nothing is expected before there is a connection. Called
  /// between calls of the endpoint.
  void validate() const;

 private:
  void request_delivered();
  /// \return Completion::written for the message that is delivered now
  uint32_t take_written();
  Fault check(uint8_t control, bool tagged, uint32_t qn, const OpcodeRow*& row) const;
  Fault deliver_write(const wire::DdpTaggedHeader& header, uint32_t payload) override;
  Fault deliver_read_response(const wire::DdpTaggedHeader& header, uint32_t payload) override;
  Fault deliver_send(const UntaggedMessage& message) override;
  Fault deliver_immediate(const UntaggedMessage& message) override;
  Fault deliver_read_request(const UntaggedMessage& message) override;
  Fault deliver_atomic_request(const UntaggedMessage& message) override;
  Fault deliver_atomic_response(const UntaggedMessage& message) override;
  Fault deliver_terminate(const UntaggedMessage& message) override;

  const bool extensions_;
  bool send_rtr_in_ = false;  // message 1 of queue 0 is the peer's RTR
  StreamMemory memory_;
  const Life& life_;
  ReceiveQueue& receives_;
  Requester& requester_;
  Responder& responder_;
  Completions& completions_;
  ddp::Stream& stream_;
  Counters& counters_;
  InboundOwner& owner_;
  ReceiveWait wait_;
  uint64_t waits_begun_ = 0;
  uint64_t written_ = 0;  // by segments of Writes that were told of, since the last message
  std::array<uint8_t, wire::kTerminateSizeMax> terminate_in_{};  // the queue 2 buffer
};

}  // namespace rnic::rdmap

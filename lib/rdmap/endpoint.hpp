/// \file
/// The parts of an Endpoint together: turn-taking outbound, delivery inbound, error states.
#pragma once

#include <array>
#include <cstdint>

#include "base/check.hpp"
#include "ddp/ddp.hpp"
#include "rdmap/completions.hpp"
#include "rdmap/deliveries.hpp"
#include "rdmap/opcodes.hpp"
#include "rdmap/payload.hpp"
#include "rdmap/rdmap.hpp"
#include "rdmap/receive_queue.hpp"
#include "rdmap/requester.hpp"
#include "rdmap/responder.hpp"
#include "rdmap/rtr_message.hpp"
#include "rdmap/send_queue.hpp"
#include "rdmap/stream_memory.hpp"
#include "rdmap/terminate.hpp"

namespace rnic::rdmap {

/// Invariants
/// - Messages are never interleaved: `current_` is pulled to its end, or abandoned for a Terminate.
/// - Where the stream has ended for the user (Terminating, Error, Closed) nothing is outstanding:
/// all that was posted was flushed.
class Endpoint::Impl final : public ddp::User, private Deliveries {
 public:
  Impl(const EndpointConfig& config, mem::StagTable& memory, Counters& counters,
       EndpointOwner& owner, const Queues& queues);

  [[nodiscard]] llp::FramingUser& framing_user() { return stream_; }
  void bind(llp::Framing& framing, const Agreement& agreement);
  void serve();
  void disconnect();
  void abort();
  [[nodiscard]] EndpointState state() const { return state_; }
  [[nodiscard]] bool idle() const { return !sends_.has_unreported() && receives_.empty(); }
  [[nodiscard]] bool has_work() const { return sends_.has_unreported() || responder_.has_ready(); }
  [[nodiscard]] bool has_unsent() const {
    return current_.kind != Kind::None || sends_.has_next() || responder_.has_ready();
  }
  [[nodiscard]] uint32_t sends_completed() const { return sends_.report(); }
  [[nodiscard]] uint32_t ird() const { return responder_.limit(); }
  [[nodiscard]] uint32_t ord() const { return requester_.limit(); }
  void validate() const;

  // ddp::User
  llp::PulledUlpdu pull(uint32_t max, bool whole_only, llp::UlpduWriter& out,
                        base::Now now) override;
  bool rebuild(const llp::RecordTag& tag, llp::UlpduWriter& out) override;
  void released(const llp::RecordTag& tag) override;
  [[nodiscard]] bool fills_segment(uint32_t octets, uint32_t overhead) const override;
  [[nodiscard]] bool all_fits(uint32_t octets, uint32_t overhead) const override;
  [[nodiscard]] uint8_t version() const override { return version_; }
  Fault tagged_rights(const wire::DdpTaggedHeader& header, uint32_t payload,
                      AccessSet& rights) override;
  Fault untagged_target(const wire::DdpUntaggedHeader& header, ddp::UntaggedTarget& out) override;
  bool find_buffer(const wire::DdpUntaggedHeader& header, uint32_t missing, bool in_order) override;
  Fault deliver_tagged(const wire::DdpTaggedHeader& header, uint32_t payload) override;
  Fault deliver_untagged(const wire::DdpUntaggedHeader& header, uint64_t length, bool uniform,
                         const ddp::SegmentReport& segment, base::Now now) override;
  void fault(const Fault& fault, const ddp::SegmentReport& segment, base::Now now) override;
  void may_send() override;
  void peer_silent() override;
  void framing_error(llp::FramingError error, base::Now now) override;
  void peer_finished(bool clean, base::Now now) override;
  void ended(StreamEnd how, base::Now now) override;

 private:
  /// What a record belongs to; part of its RecordTag.
  enum class Kind : uint8_t { None, Send, Response, Terminate, Rtr, Nudge };

  struct Current {
    Kind kind = Kind::None;
    uint32_t seq = 0;     // slot in the send queue or among the inbound requests
    uint8_t part = 0;     // of a slot in the send queue: which of its messages
    uint32_t offset = 0;  // octets of the message pulled so far
    ddp::OutboundMessage message;
  };

  void set_state(EndpointState next) {
    RNIC_CHECK(kEndpointTransitions.allows(state_, next));
    state_ = next;
  }

  [[nodiscard]] bool running() const { return is_running(state_); }

  // outbound.cpp
  bool choose(base::Now now);
  bool choose_send(base::Now now);
  bool choose_response(base::Now now);
  [[nodiscard]] mem::AccessFault locate(Kind kind, uint32_t seq, uint8_t part, const ddp::Cut& cut,
                                        Payload& out) const;
  void refuse_payload(const Current& current, const ddp::Cut& cut, mem::AccessFault fault,
                      base::Now now);
  void finish_message();
  llp::PulledUlpdu pull_terminate(uint32_t max, llp::UlpduWriter& out);
  void write_terminate(llp::UlpduWriter& out);
  llp::PulledUlpdu pull_rtr(uint32_t max, llp::UlpduWriter& out, base::Now now);
  llp::PulledUlpdu pull_nudge(uint32_t max, llp::UlpduWriter& out);
  void close_if_finished();
  void call_ready();

  // inbound.cpp
  Fault check(uint8_t control, bool tagged, uint32_t qn, const OpcodeRow*& row) const;
  Fault deliver_write(const wire::DdpTaggedHeader& header, uint32_t payload) override;
  Fault deliver_read_response(const wire::DdpTaggedHeader& header, uint32_t payload) override;
  Fault deliver_send(const UntaggedMessage& message) override;
  Fault deliver_immediate(const UntaggedMessage& message) override;
  Fault deliver_read_request(const UntaggedMessage& message) override;
  Fault deliver_atomic_request(const UntaggedMessage& message) override;
  Fault deliver_atomic_response(const UntaggedMessage& message) override;
  Fault deliver_terminate(const UntaggedMessage& message) override;
  void response_finished();

  // endpoint.cpp
  void raise(const Fault& fault, const ddp::SegmentReport& segment, base::ByteView rdma_header,
             base::Now now);
  void end_without_terminate(const Fault& fault);
  void count(const Fault& fault);
  void fail(const Ending& why);
  void flush();
  void provide_requests();

  const EndpointConfig config_;
  StreamMemory memory_;
  Counters& counters_;
  EndpointOwner& owner_;
  ddp::Stream stream_;
  llp::Framing* framing_ = nullptr;
  EndpointState state_ = EndpointState::Idle;
  uint8_t version_ = 1;  // RV and DV of the stream

  SendQueue& sends_;
  ReceiveQueue& receives_;
  Completions completions_;
  Requester requester_;
  Responder responder_;

  Current current_;
  bool responses_turn_ = false;  // the next whole message comes from the Responses, if there is one
  RtrMessage rtr_;
  bool send_rtr_in_ = false;  // message 1 of queue 0 is the peer's RTR
  // No state: a zero-length Write to a silent peer goes before the next message, in Connected as in
  // Closing.
  bool nudge_pending_ = false;
  // No state: it comes once, with the first flush.
  bool receives_done_ = false;  // of a shared receive queue no more are taken, and the owner knows
  // The first cause of the end of the stream's use, for Disconnected.
  std::optional<Fault> end_cause_;
  QueuePairError end_error_ = QueuePairError::None;

  SentTerminate terminate_;
  std::array<uint8_t, wire::kTerminateSizeMax> terminate_in_{};  // the queue 2 buffer
};

}  // namespace rnic::rdmap

/// \file
/// Joins the two directions of an Endpoint: its states, and the consequences of a fault or an end.
#pragma once

#include <cstdint>
#include <optional>

#include "ddp/ddp.hpp"
#include "rdmap/completions.hpp"
#include "rdmap/inbound.hpp"
#include "rdmap/life.hpp"
#include "rdmap/outbound.hpp"
#include "rdmap/rdmap.hpp"
#include "rdmap/receive_queue.hpp"
#include "rdmap/requester.hpp"
#include "rdmap/responder.hpp"
#include "rdmap/send_queue.hpp"

namespace rnic::rdmap {

/// In the states in which the stream has ended for the user (Terminating, Error, Closed) nothing is
/// outstanding: everything posted was flushed.
class alignas(64) Endpoint::Impl final : public ddp::User,
                                         private OutboundOwner,
                                         private InboundOwner {
 public:
  Impl(const EndpointConfig& config, mem::StagTable& memory, Counters& counters,
       EndpointOwner& owner, const Queues& queues);

  [[nodiscard]] llp::FramingUser& framing_user() { return stream_; }
  [[nodiscard]] llp::WorkingSet::Part working_part() const {
    const auto* const placement_end = reinterpret_cast<const uint8_t*>(&stream_ + 1);
    const auto taking = placement_end - reinterpret_cast<const uint8_t*>(this);
    return {.at = this, .taking = static_cast<uint16_t>(taking), .sending = sizeof *this};
  }
  void bind(llp::Framing& framing, const Agreement& agreement);
  void plan(const EndpointFaults& faults);
  Status commit(const PlannedFault& fault, base::Now now);
  void answer_stalled(base::Now now);
  void serve();
  void resume(base::Now now);
  [[nodiscard]] bool waits_for_receive() const { return inbound_.wait().is_going(); }
  [[nodiscard]] uint64_t receive_waits() const { return inbound_.waits_begun(); }
  void disconnect();
  void abort();
  [[nodiscard]] EndpointState state() const { return life_.state(); }
  [[nodiscard]] bool idle() const { return !sends_.has_unreported() && receives_.empty(); }
  [[nodiscard]] bool has_work() const {
    return sends_.has_unreported() || responder_.has_unanswered();
  }
  [[nodiscard]] bool has_unsent() const { return outbound_.has_unsent(); }
  [[nodiscard]] uint32_t sends_completed() const { return sends_.report(); }
  [[nodiscard]] uint32_t ird() const { return responder_.limit(); }
  [[nodiscard]] uint32_t ord() const { return requester_.limit(); }
  void validate() const;

  // ddp::User
  llp::PulledUlpdu pull(uint32_t max, bool whole_only, llp::UlpduWriter& out,
                        base::Now now) override {
    return outbound_.pull(max, whole_only, out, now);
  }
  bool rebuild(const llp::RecordTag& tag, llp::UlpduWriter& out) override {
    return outbound_.rebuild(tag, out);
  }
  void released(const llp::RecordTag& tag) override { outbound_.released(tag); }
  void released_run(llp::RecordRun run) override { outbound_.released_run(run); }
  [[nodiscard]] bool fills_segment(uint32_t octets, uint32_t overhead) const override {
    return outbound_.fills_segment(octets, overhead);
  }
  [[nodiscard]] bool all_fits(uint32_t octets, uint32_t overhead) const override {
    return outbound_.all_fits(octets, overhead);
  }
  [[nodiscard]] uint8_t version() const override { return life_.version(); }
  Fault tagged_target(const wire::DdpTaggedHeader& header, uint32_t payload,
                      ddp::TaggedTarget& out) override {
    return inbound_.tagged_target(header, payload, out);
  }
  Fault untagged_target(const wire::DdpUntaggedHeader& header, ddp::UntaggedTarget& out) override {
    return inbound_.untagged_target(header, out);
  }
  bool find_buffer(const wire::DdpUntaggedHeader& header, uint32_t missing,
                   bool in_order) override {
    return inbound_.find_buffer(header, missing, in_order);
  }
  bool waits_for_buffer(const wire::DdpUntaggedHeader& header, base::Now now) override {
    return inbound_.waits_for_buffer(header, now);
  }
  [[nodiscard]] bool ever_waits() const override { return inbound_.wait().is_allowed(); }
  [[nodiscard]] bool may_wait(uint32_t segments) const override {
    return inbound_.may_wait(segments);
  }
  [[nodiscard]] bool may_wait(const wire::DdpUntaggedHeader& header) const override {
    return inbound_.may_wait(header);
  }
  Fault deliver_tagged(const wire::DdpTaggedHeader& header, uint32_t payload) override {
    return inbound_.deliver_tagged(header, payload);
  }
  Fault deliver_untagged(const wire::DdpUntaggedHeader& header, uint64_t length, bool uniform,
                         const ddp::SegmentReport& segment, base::Now now) override {
    return inbound_.deliver_untagged(header, length, uniform, segment, now);
  }
  void fault(const Fault& fault, const ddp::SegmentReport& segment, base::Now now) override;
  void may_send() override;
  void peer_silent() override { outbound_.peer_silent(); }
  void framing_error(llp::FramingError error, base::Now now) override;
  void peer_finished(bool clean, base::Now now) override;
  void ended(StreamEnd how, base::Now now) override;

 private:
  // OutboundOwner
  void raise(const Fault& fault, const ddp::SegmentReport& segment, base::ByteView rdma_header,
             base::Now now) override;
  void unanswerable() override;
  void rtr_sent(base::Now now) override { owner_.rtr_sent(now); }
  void terminate_sent() override;
  void all_done() override;

  // InboundOwner
  void response_finished() override { outbound_.response_finished(); }
  void wait_began(base::Now deadline) override { owner_.receive_wait_began(deadline); }
  void response_stalled(base::Now until) override { owner_.response_stalled(until); }
  void terminate_received(event::TerminateReceived event, base::Now now) override;

  void end_without_terminate(const Fault& fault);
  void count(const Fault& fault);
  void enter_end(EndpointState end);
  void fail(const Ending& why);
  void flush();

  Counters& counters_;
  EndpointOwner& owner_;
  ddp::Stream stream_;
  Life life_;

  SendQueue& sends_;
  ReceiveQueue& receives_;
  Completions completions_;
  Requester requester_;
  Responder responder_;
  Outbound outbound_;
  Inbound inbound_;

  // This is not part of the state: it becomes true once, with the first flush.
  bool receives_done_ = false;  // no more shared receives are taken, and the owner was told
  // The first cause of the end of the stream's use, for Disconnected.
  std::optional<Fault> end_cause_;
  QueuePairError end_error_ = QueuePairError::None;
};

}  // namespace rnic::rdmap

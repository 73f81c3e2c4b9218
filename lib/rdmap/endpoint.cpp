#include "rdmap/endpoint.hpp"

#include <string>
#include <string_view>
#include <utility>

#include "base/fail.hpp"
#include "base/starved.hpp"
#include "rdmap/stream_memory.hpp"
#include "rdmap/terminate.hpp"

namespace rnic::rdmap {

const char* to_string(EndpointState state) {
  switch (state) {
    case EndpointState::Idle: return "idle";
    case EndpointState::Connected: return "connected";
    case EndpointState::Closing: return "closing";
    case EndpointState::HalfClosed: return "half closed";
    case EndpointState::Terminating: return "terminating";
    case EndpointState::Error: return "error";
    case EndpointState::Closed: return "closed";
  }
  return "unknown";
}

Endpoint::Impl::Impl(const EndpointConfig& config, mem::StagTable& memory, Counters& counters,
                     EndpointOwner& owner, const Queues& queues)
    : counters_(counters),
      owner_(owner),
      stream_({.who = {config.pd, config.stream},
               // Queue 3 belongs to RFC 7306.
               .queues = config.extensions ? wire::kRdmapQueues : wire::kRdmapAtomicResponseQn,
               .secret = config.secret},
              memory, *this,
              {counters.segments_placed, counters.octets_placed, counters.placements_postponed}),
      sends_(queues.sends),
      receives_(queues.receives),
      completions_(config.qp, queues, counters, owner),
      requester_(config, {memory, {config.pd, config.stream}}, counters, queues, completions_),
      responder_(config, {memory, {config.pd, config.stream}}, counters, queues.requests),
      outbound_({.life = life_,
                 .sends = sends_,
                 .requester = requester_,
                 .responder = responder_,
                 .completions = completions_,
                 .stream = stream_,
                 .memory = {memory, {config.pd, config.stream}},
                 .counters = counters,
                 .owner = *this}),
      inbound_({.extensions = config.extensions, .receive_wait = config.receive_wait},
               {memory, {config.pd, config.stream}},
               {.life = life_,
                .receives = receives_,
                .requester = requester_,
                .responder = responder_,
                .completions = completions_,
                .stream = stream_,
                .counters = counters,
                .owner = *this}) {}

void Endpoint::Impl::bind(llp::Framing& framing, const Agreement& agreement) {
  if (life_.state() != EndpointState::Idle) return;
  life_.bind(framing);
  if (agreement.ird) responder_.set_limit(*agreement.ird);
  if (agreement.ord) requester_.set_limit(*agreement.ord);
  outbound_.begin(agreement.rtr_out);
  inbound_.begin(agreement.send_rtr_in);
}

void Endpoint::Impl::plan(const EndpointFaults& faults) {
  outbound_.plan_terminate(faults.terminate_at);
  responder_.plan(faults.stalls);
}

namespace {

Status gone_by(const PlannedFault& fault, const char* what) {
  return base::fail(ErrorCode::WrongState, "commit: \"" + to_string(fault) +
                                               "\": the connection has had " + what +
                                               ": name a later one");
}

}  // namespace

Status Endpoint::Impl::commit(const PlannedFault& fault, base::Now now) {
  if (needs_frames(fault)) {
    return base::fail(ErrorCode::Unsupported,
                      "commit: \"" + to_string(fault) +
                          "\" is done to frames, which is planned before the device is opened: "
                          "set device.fault of the configuration");
  }
  if (life_.state() != EndpointState::Connected && life_.state() != EndpointState::Closing) {
    return base::fail(ErrorCode::WrongState,
                      "commit: the queue pair is not connected: connect() or accept() first");
  }
  if (fault.kind == PlannedFaultKind::StallResponder) {
    if (fault.request != 0 && fault.request <= responder_.delivered()) {
      return gone_by(fault, "that request");
    }
    responder_.stall({fault.delay, fault.request});
    return {};
  }
  if (fault.message != 0 && fault.message <= outbound_.messages()) {
    return gone_by(fault, "that message");
  }
  // A responder may not send a Terminate before the peer's first FPDU (RFC 5044 s.7.1.2 rule 4).
  if (fault.message != 0 || !life_.may_send()) {
    outbound_.plan_terminate(fault.message);
    return {};
  }
  ++counters_.terminates_planned;
  raise(kPlannedTerminate, {}, {}, now);
  return {};
}

void Endpoint::Impl::answer_stalled(base::Now now) {
  if (!life_.running()) return;
  responder_.allow(now);
  if (responder_.next_due() != base::kNever) owner_.response_stalled(responder_.next_due());
  life_.call_ready();
}

void Endpoint::Impl::validate() const {
  life_.validate();
  sends_.validate();
  requester_.validate();
  responder_.validate();
  outbound_.validate();
  inbound_.validate();
  RNIC_CHECK(!completions_.is_flushing());
  RNIC_CHECK(life_.running() || requester_.outstanding() == 0);
  RNIC_CHECK(life_.running() || life_.state() == EndpointState::Idle || idle());
}

void Endpoint::Impl::serve() {
  if (completions_.is_flushing()) return;  // the flush under way takes the posted work, too
  // Receives come first, since the peer may answer a send into them.
  if (life_.running() || life_.state() == EndpointState::Idle) {
    inbound_.accept_posted();
  } else {
    completions_.pass_receives();
  }
  outbound_.accept_posted();
  if (!life_.running()) completions_.pass_sends();
}

void Endpoint::Impl::resume(base::Now now) {
  if (!inbound_.may_resume(now)) return;
  if (!life_.resume(now)) inbound_.leave_wait();
}

namespace {

/// Tells an error of this side from a rule that the peer broke. RFC 5041 s.7.2 has one code for a
/// buffer of ours that cannot be written to and for all errors without a code: the rule tells them
/// apart.
Ending ending_by(const Fault& fault) {
  const bool catastrophic = fault.type == ddp::kLocalCatastrophic;
  const bool own =
      catastrophic &&
      (fault.layer == FaultLayer::Rdmap ||
       (fault.layer == FaultLayer::Ddp && std::string_view(fault.rule) == ddp::kCatastrophic.rule));
  return {own ? CompletionCause::LocalError : CompletionCause::PeerFault, code_of(fault)};
}

Ending ending_by(StreamEnd how) {
  switch (how) {
    case StreamEnd::Closed: return {CompletionCause::Closed};
    case StreamEnd::PeerReset: return {CompletionCause::PeerReset};
    case StreamEnd::TimedOut: return {CompletionCause::TimedOut};
    case StreamEnd::Refused:
    case StreamEnd::Unreachable: return {CompletionCause::Unreachable};
    case StreamEnd::Aborted: break;
  }
  return {CompletionCause::Aborted};
}

}  // namespace

/// Enters a final state: nothing is delivered any more, and nothing more is sent of the message
/// that was begun.
void Endpoint::Impl::enter_end(EndpointState end) {
  life_.enter(end);
  stream_.stop();
  inbound_.leave_wait();
  outbound_.abandon();
}

/// Enters the error state without a Terminate, where nobody is there to read one.
void Endpoint::Impl::fail(const Ending& why) {
  completions_.set_ending(why);
  enter_end(EndpointState::Error);
  flush();
}

void Endpoint::Impl::flush() {
  requester_.clear();
  completions_.flush();
  if (receives_done_ || !receives_.is_shared()) return;
  receives_done_ = true;
  owner_.last_receive_done();
}

void Endpoint::Impl::disconnect() {
  if (life_.state() == EndpointState::Idle) {
    life_.enter(EndpointState::Closed);
    completions_.set_ending({CompletionCause::Disconnected});
    flush();
    return;
  }
  if (life_.state() != EndpointState::Connected) return;
  life_.enter(EndpointState::Closing);
  outbound_.close_if_finished();
}

void Endpoint::Impl::all_done() {
  life_.enter(EndpointState::HalfClosed);
  life_.close();
}

void Endpoint::Impl::abort() {
  life_.abort();
  if (life_.state() == EndpointState::Closed) return;
  fail({CompletionCause::Aborted});
}

void Endpoint::Impl::unanswerable() {
  fail({CompletionCause::PeerClosed});
  life_.close();
}

void Endpoint::Impl::terminate_sent() {
  life_.enter(EndpointState::Error);
  life_.close();  // RDMAP-6.2.1-03: the half close lets the Terminate arrive
}

void Endpoint::Impl::raise(const Fault& fault, const ddp::SegmentReport& segment,
                           base::ByteView rdma_header, base::Now now) {
  if (!life_.running()) return;  // RDMAP-7.1-05: the first error is the one reported
  if (life_.state() == EndpointState::HalfClosed || !life_.may_send())
    return end_without_terminate(fault);
  outbound_.set_terminate(terminate_for(fault, segment, rdma_header));
  enter_end(EndpointState::Terminating);
  life_.discard_received();
  count(fault);
  end_cause_ = fault;
  end_error_ = error_of(fault);
  completions_.set_ending(ending_by(fault));
  // The flush comes first, so that whoever reads the event finds the completions of all posted
  // work.
  flush();
  event::TerminateSent event{{}, fault, end_error_};
  event.detail = base::worded([&] {
    std::string text = "Terminate sent: " + describe(fault) + ", rule " + fault.rule;
    if (segment.header_size == 0) return text;
    return text + "; segment of " + std::to_string(segment.length) + " octets, header " +
           hex(segment.view());
  });
  owner_.event(std::move(event), now);
  life_.call_ready();
}

/// No Terminate can leave, because the stream has been closed or may not send yet: the peer learns
/// of the fault by the end of the stream, and our user by the cause in Disconnected. DDP-6.2.1-02:
/// no Terminate follows a FIN, as nobody would read it.
void Endpoint::Impl::end_without_terminate(const Fault& fault) {
  const bool unread = life_.state() == EndpointState::HalfClosed || stream_.peer_has_finished();
  count(fault);
  end_cause_ = fault;
  end_error_ = error_of(fault);
  fail(ending_by(fault));
  life_.discard_received();
  unread ? life_.abort() : life_.close();
}

void Endpoint::Impl::count(const Fault& fault) {
  if (fault.layer == FaultLayer::Llp) {
    ++counters_.faults_llp;
  } else if (fault.type == ddp::kLocalCatastrophic) {
    ++counters_.faults_local;
  } else if (fault.layer == FaultLayer::Ddp) {
    ++(fault.type == ddp::kTaggedBuffer ? counters_.faults_tagged : counters_.faults_untagged);
  } else {
    ++(fault.type == 0x1 ? counters_.faults_protection : counters_.faults_operation);
  }
}

void Endpoint::Impl::fault(const Fault& fault, const ddp::SegmentReport& segment, base::Now now) {
  ++counters_.faults;
  if (stream_.peer_has_finished()) return end_without_terminate(fault);
  // A local buffer that cannot be written to is our user's error (RDMAP-7.1-01).
  if (fault.type == ddp::kLocalCatastrophic) inbound_.refuse_buffer(segment);
  raise(fault, segment, inbound_.read_request(segment), now);
}

void Endpoint::Impl::may_send() {
  life_.learn_version();
  outbound_.may_send();
}

/// RDMAP-5.4-05: a side that has received a Terminate stops sending, too.
void Endpoint::Impl::terminate_received(event::TerminateReceived event, base::Now now) {
  end_cause_ = event.fault;
  end_error_ = QueuePairError::Fatal;
  fail({CompletionCause::PeerTerminate, code_of(event.fault)});
  owner_.event(std::move(event), now);
  life_.discard_received();
  life_.close();
}

void Endpoint::Impl::framing_error(llp::FramingError error, base::Now now) {
  ++counters_.faults;
  // RFC 5040 figure 9: the code is the LLP's own (RFC 5044 s.8), and no headers are attached.
  raise({FaultLayer::Llp, 0x0, static_cast<uint8_t>(error), "RDMAP-4.8-06"}, {}, {}, now);
}

void Endpoint::Impl::peer_finished(bool clean, base::Now now) {
  if (!life_.running()) return;
  if (!clean) {
    // MPA error 1: the connection was lost inside an FPDU. The owner learns of it in ended().
    ++counters_.faults;
    ++counters_.faults_llp;
    end_cause_ = Fault{FaultLayer::Llp, 0x0, static_cast<uint8_t>(llp::FramingError::Closed),
                       "RDMAP-4.8-06"};
    end_error_ = QueuePairError::Fatal;
    fail(ending_by(*end_cause_));
    life_.abort();
    return;
  }
  event::PeerClosed event;
  event.detail = base::worded([] { return "the peer closed its direction"; });
  owner_.event(std::move(event), now);
  if (requester_.outstanding() == 0) return;  // DDP-6.2.1-03: the other half lives on
  // The Responses that are outstanding will not come any more.
  end_error_ = QueuePairError::Fatal;
  fail({CompletionCause::PeerClosed});
  life_.close();
}

void Endpoint::Impl::ended(StreamEnd how, base::Now now) {
  life_.unbind();
  const bool running = life_.running();
  const bool orderly =
      how == StreamEnd::Closed && (running || life_.state() == EndpointState::Idle);
  // RFC 5044 s.8, error 1: the connection was lost while it was in use. No rule was broken.
  const bool lost = running && !orderly && how != StreamEnd::Aborted;
  if (lost) {
    end_cause_ = Fault{FaultLayer::Llp, 0x0, static_cast<uint8_t>(llp::FramingError::Closed)};
    requester_.lost();
  }
  completions_.set_ending(ending_by(how));
  if (end_error_ == QueuePairError::None && how != StreamEnd::Closed) {
    end_error_ = QueuePairError::Fatal;
  }
  // An endpoint that is Closed stays Closed.
  if (life_.state() != EndpointState::Closed) {
    life_.enter(orderly ? EndpointState::Closed : EndpointState::Error);
  }
  stream_.stop();
  inbound_.leave_wait();
  outbound_.abandon();
  flush();
  event::Disconnected event{{{}, end_cause_, how}, end_error_};
  event.detail = base::worded([&] {
    const std::string text = std::string("stream ended: ") + to_string(how);
    return end_cause_ && end_cause_->failed() ? text + ": " + describe(*end_cause_) : text;
  });
  owner_.event(std::move(event), now);
}

Endpoint::Endpoint(const EndpointConfig& config, mem::StagTable& memory, Counters& counters,
                   EndpointOwner& owner, const Queues& queues)
    : impl_(std::make_unique<Impl>(config, memory, counters, owner, queues)) {}
Endpoint::~Endpoint() = default;
Endpoint::Endpoint(Endpoint&&) noexcept = default;
Endpoint& Endpoint::operator=(Endpoint&&) noexcept = default;

llp::WorkingSet::Part Endpoint::working_part() const { return impl_->working_part(); }
llp::FramingUser& Endpoint::framing_user() { return impl_->framing_user(); }
void Endpoint::bind(llp::Framing& framing, const Agreement& agreement) {
  impl_->bind(framing, agreement);
}
void Endpoint::plan(const EndpointFaults& faults) { impl_->plan(faults); }
Status Endpoint::commit(const PlannedFault& fault, base::Now now) {
  return impl_->commit(fault, now);
}
void Endpoint::answer_stalled(base::Now now) { impl_->answer_stalled(now); }
void Endpoint::serve() { impl_->serve(); }
void Endpoint::resume(base::Now now) { impl_->resume(now); }
bool Endpoint::waits_for_receive() const { return impl_->waits_for_receive(); }
uint64_t Endpoint::receive_waits() const { return impl_->receive_waits(); }
void Endpoint::disconnect() { impl_->disconnect(); }
void Endpoint::abort() { impl_->abort(); }
uint32_t Endpoint::ord() const { return impl_->ord(); }
uint32_t Endpoint::ird() const { return impl_->ird(); }
EndpointState Endpoint::state() const { return impl_->state(); }
bool Endpoint::idle() const { return impl_->idle(); }
bool Endpoint::has_work() const { return impl_->has_work(); }
bool Endpoint::has_unsent() const { return impl_->has_unsent(); }
uint32_t Endpoint::sends_completed() const { return impl_->sends_completed(); }
void Endpoint::validate() const { impl_->validate(); }

}  // namespace rnic::rdmap

// The part of Session that does the start-up (RFC 5044 s.7.1.2, RFC 6581, draft-ietf-rddp-mpa-00
// s.8.1).
#include <algorithm>
#include <array>

#include "mpa/session.hpp"

namespace rnic::mpa {

namespace {

/// The time for which the session waits for an answer to a delayed first FPDU before it calls the
/// peer silent (docs/decisions/0010).
constexpr base::Duration kSilence = std::chrono::milliseconds(200);

}  // namespace

Session::Session(const Config& config, framing::Role role, framing::HoldStore& hold,
                 Counters& counters, framing::StartEvents& events, base::ByteView private_data,
                 const framing::StartOptions& start_options)
    : SessionBase(config, hold,
                  {counters.fpdus_in, counters.placed_in_order_octets, counters.placed_early_octets,
                   counters.held_octets, counters.hold_refused, counters.discarded_octets},
                  locator_),
      role_(role),
      counters_(counters),
      events_(events),
      start_(std::make_unique<StartUp>(config, role, start_options)),
      locator_(config, hold, counters) {
  if (role == framing::Role::Responder) return;
  RNIC_CHECK(private_data.size() <= mpa::private_data_max(start_->plan));
  start_->sender.set(make_start_frame(wire::kMpaRequestKey, start_->plan, private_data));
}

void Session::established(uint32_t emss, base::Now now) {
  set_emss(emss);
  deadline_ = now + start_->config.start_timeout;
  if (role_ == framing::Role::Initiator) {
    set_state(StartState::SendRequest);
    stream()->ready();
  } else {
    set_state(StartState::AwaitRequest);
  }
}

void Session::take_over(uint32_t emss, uint64_t received, base::ByteView last_message,
                        base::Now now) {
  if (!last_message.empty()) start_->last_message.set({last_message.begin(), last_message.end()});
  received_ = received;
  receiver_.arrived(received);
  established(emss, now);
  stream()->ready();
}

/// Feeds the parser and acts when the frame is complete. \return octets used
size_t Session::parse(base::ByteView octets, bool more_behind, base::Now now) {
  return parse_start(octets, now, [&] { return read_frame(octets, more_behind, now); });
}

size_t Session::read_frame(base::ByteView octets, bool more_behind, base::Now now) {
  const size_t used = start_->parser.feed(octets);
  received_ += used;
  if (start_->parser.failure()) {
    bad_start_frame(*start_->parser.failure(), now);
  } else if (start_->parser.complete()) {
    read_start_frame();
    if (role_ == framing::Role::Responder) {
      request_complete(more_behind || used < octets.size(), now);
    } else {
      reply_complete(now);
    }
  }
  return used;
}

void Session::read_start_frame() {
  size_t prefix = 0;
  start_->offer =
      read_offer(start_->config, role_ == framing::Role::Initiator ? &start_->plan : nullptr,
                 start_->parser.header(), start_->parser.private_data(), prefix);
  start_->ulp_data = start_->parser.private_data().subspan(prefix);
}

void Session::bad_start_frame(framing::StartFailure why, base::Now now) {
  const bool draft =
      why == framing::StartFailure::BadRevision && start_->parser.header().revision == 0;
  if (role_ == framing::Role::Initiator || !draft) return fail(why, {}, now);
  // RFC 5044 s.C.2.1: a non-permissive responder sends its own revision and closes.
  start_->plan = plan_reply(start_->config, {}, {.revision = 1});
  make_reject(start_->plan);
  start_->sender.set(make_start_frame(wire::kMpaReplyKey, start_->plan, {}));
  set_state(StartState::SendReject);
  start_->refusal = why;
  stream()->ready();
  stream()->close();
}

void Session::request_complete(bool more_behind, base::Now now) {
  // RFC 5044 s.7.1.2 rules 2 and 3: the initiator waits for the Reply.
  if (more_behind) return fail(framing::StartFailure::UnexpectedData, {}, now);
  if (start_->parser.header().markers && !start_->config.markers_send_allowed) {
    return fail(framing::StartFailure::MarkersRefused, {}, now);
  }
  start_->plan = plan_reply(start_->config, {}, start_->offer);
  set_state(StartState::AwaitDecision);
  events_.request_received(start_->offer, start_->ulp_data, now);
  start_->parser.release();
}

size_t Session::private_data_max() const { return mpa::private_data_max(start_->plan); }

void Session::answer(bool accepted, base::ByteView private_data,
                     const framing::StartOptions& start_options) {
  if (state_ != StartState::AwaitDecision) return;  // failed meanwhile; start_failed() said so
  StartPlan plan = plan_reply(start_->config, start_options, start_->offer);
  const framing::Negotiated agreed = plan.agreed;
  const bool possible = accepted && plan.reads_suffice;
  if (!possible) make_reject(plan);
  // The frame is made first, since this needs memory: when it fails nothing else has changed.
  start_->sender.set(make_start_frame(wire::kMpaReplyKey, plan, private_data));
  start_->plan = plan;
  agreed_ = agreed;
  if (accepted && !possible) start_->refusal = framing::StartFailure::InsufficientReads;
  set_state(possible ? StartState::SendReply : StartState::SendReject);
  stream()->ready();
  // Revision 0 has no bit for a reject: the stream is closed behind the Reply
  // (draft-ietf-rddp-mpa-00 s.8.1).
  const bool closes = start_->config.reject_closes || plan.header.revision == 0;
  if (!possible && closes) stream()->close();
}

void Session::reply_complete(base::Now now) {
  if (state_ != StartState::AwaitReply) return fail(framing::StartFailure::UnexpectedData, {}, now);
  const ReplyVerdict verdict =
      judge_reply(start_->config, start_->options, start_->plan, start_->offer);
  agreed_ = verdict.agreed;
  if (start_->parser.header().reject) {
    const bool closes = start_->config.reject_closes;
    closes ? fail(framing::StartFailure::RejectedByPeer, start_->ulp_data, now)
           : leave(framing::StartFailure::RejectedByPeer, start_->ulp_data, now);
    return;
  }
  if (verdict.enhanced_missing) return fail(framing::StartFailure::NotEnhanced, {}, now);
  const bool markers_refused =
      start_->parser.header().markers && !start_->config.markers_send_allowed;
  if (verdict.error != llp::FramingError::None) return refuse(verdict.error, now);
  const bool enhanced = start_->offer.enhanced;
  if (markers_refused && enhanced) return refuse(llp::FramingError::LocalCatastrophic, now);
  if (markers_refused) return fail(framing::StartFailure::MarkersRefused, {}, now);
  const bool delayed = start_->config.first_fpdu_delay > base::Duration{};
  deadline_ = now + start_->config.first_fpdu_delay;
  begin_full_operation(delayed ? StartState::Delayed : StartState::Done, start_->ulp_data, now);
  start_->parser.release();
  if (delayed) {
    ++counters_.first_fpdus_delayed;
  } else {
    begin_sending();
  }
}

/// The stream has taken the last octet of our start frame.
void Session::start_frame_sent(base::Now now) {
  switch (state_) {
    case StartState::SendRequest: set_state(StartState::AwaitReply); break;
    case StartState::SendReply:
      deadline_ = now + start_->config.rtr_timeout;
      begin_full_operation(agreed_.peer_to_peer ? StartState::AwaitRtr : StartState::AwaitFpdu, {},
                           now);
      break;
    case StartState::SendReject:
      if (start_->config.reject_closes || start_->plan.header.revision == 0 ||
          start_->refusal == framing::StartFailure::BadRevision) {
        fail(start_->refusal, {}, now);
      } else {
        leave(start_->refusal, {}, now);
      }
      break;
    default: break;
  }
}

void Session::enter_full_operation(StartState next) {
  RNIC_CHECK(user() != nullptr);  // RFC 5044 s.7.1: a DDP endpoint is bound before full operation
  set_state(next);
  send_grid_ = MarkerGrid(agreed_.markers_send, start_->sender.end_offset());
  locator_.start(received_, agreed_);
  receiver_.start(received_);
  note_mulpdu();
}

void Session::begin_full_operation(StartState next, base::ByteView private_data, base::Now now) {
  enter_full_operation(next);
  count_start();
  user()->mulpdu_changed(mulpdu());
  events_.started(agreed_, private_data, now);
}

void Session::count_start() {
  switch (agreed_.revision) {
    case 0: ++counters_.starts_revision_0; break;
    case 1: ++counters_.starts_revision_1; break;
    default: ++counters_.starts_revision_2; break;
  }
  if (agreed_.peer_to_peer) ++counters_.starts_peer_to_peer;
}

void Session::begin_sending() {
  user()->may_send();
  ready();
}

void Session::first_pdu(base::Now now) {
  const StartState before = state_;
  if (before == StartState::Done) return;
  set_state(StartState::Done);
  if (before == StartState::Unheard) return;  // this side sends already
  if (before == StartState::AwaitRtr) events_.rtr_received(now);
  // RFC 5044 s.7.1.2 rule 4. An initiator that delays its first FPDU may send it now, too, since a
  // peer that sends FPDUs also receives them.
  begin_sending();
}

base::Now Session::next_deadline() const {
  const bool waiting = state_ == StartState::Delayed || state_ == StartState::Unheard ||
                       state_ == StartState::AwaitRtr;
  return starting() || waiting ? deadline_ : base::kNever;
}

void Session::on_timer(base::Now now) {
  if (now < next_deadline()) return;
  if (state_ == StartState::Delayed) {
    set_state(StartState::Unheard);
    deadline_ = now + kSilence;
    return begin_sending();
  }
  if (state_ == StartState::Unheard) {
    set_state(StartState::Done);
    return user()->peer_silent();
  }
  if (state_ != StartState::AwaitRtr) return fail(framing::StartFailure::TimedOut, {}, now);
  // If the octets that came were no FPDU, this side has closed its direction, and the peer has not
  // closed the other one.
  const bool broken = receiver_.is_broken();
  set_state(StartState::Failed);
  if (!broken) ++counters_.rtr_missing;
  receiver_.discard();
  events_.start_failed(
      broken ? framing::StartFailure::RtrBroken : framing::StartFailure::RtrMissing, {}, now);
  abort();
}

/// Refuses the Reply by a Terminate, for which full operation begins (RFC 6581 s.9.1 to s.9.3).
void Session::refuse(llp::FramingError error, base::Now now) {
  framing::StartFailure why = framing::StartFailure::LocalError;
  if (error == llp::FramingError::InsufficientIrd) why = framing::StartFailure::InsufficientReads;
  if (error == llp::FramingError::NoMatchingRtr) why = framing::StartFailure::NoMatchingRtr;
  ++counters_.start_failures;
  ++counters_.start_terminates;
  enter_full_operation(StartState::Done);
  agreed_.peer_to_peer = false;
  agreed_.rtr_kinds = 0;
  receiver_.discard();
  events_.start_failed(why, start_->ulp_data, now);
  start_->parser.release();
  user()->framing_error(error, now);
  ready();
}

/// RFC 5044 s.7.1.2 rules 2 and 3: MPA is left, TCP stays open.
void Session::leave(framing::StartFailure why, base::ByteView private_data, base::Now now) {
  set_state(StartState::Left);
  ++counters_.start_rejects;
  events_.start_failed(why, private_data, now);
  start_->parser.release();
  if (peer_finished_ && left()) events_.peer_left(now);
}

void Session::count_failure(framing::StartFailure why) {
  ++counters_.start_failures;
  switch (why) {
    case framing::StartFailure::BadKey:
    case framing::StartFailure::BothInitiators:
    case framing::StartFailure::BadRevision:
    case framing::StartFailure::BadLength:
    case framing::StartFailure::UnexpectedData: ++counters_.start_bad_frames; break;
    case framing::StartFailure::TimedOut: ++counters_.start_timeouts; break;
    case framing::StartFailure::StreamEnded:
    case framing::StartFailure::Refused:
    case framing::StartFailure::Unreachable:
    case framing::StartFailure::Unanswered:
    case framing::StartFailure::ResetBeforeReply:
    case framing::StartFailure::NoReply: ++counters_.start_ends; break;
    default: break;
  }
}

void Session::fail(framing::StartFailure why, base::ByteView private_data, base::Now now) {
  set_state(StartState::Failed);
  tell_failure(why, private_data, now);
}

void Session::tell_failure(framing::StartFailure why, base::ByteView private_data, base::Now now) {
  const bool rejected =
      why == framing::StartFailure::RejectedByPeer || why == framing::StartFailure::RejectedLocally;
  if (rejected) {
    ++counters_.start_rejects;
  } else {
    count_failure(why);
  }
  receiver_.discard();
  close();
  events_.start_failed(why, private_data, now);
  start_->parser.release();
}

/// Gives the next user of the stream the octets that came ahead of the start frame and were kept.
void Session::hand_over_kept(llp::StreamSwitch& to, base::Now now) {
  RNIC_CHECK(left());
  set_state(StartState::HandedOver);
  std::array<uint8_t, 512> piece;
  for (base::Range range = receiver_.first_kept(); !range.empty(); range = receiver_.first_kept()) {
    const auto want = static_cast<uint32_t>(std::min<uint64_t>(range.size(), piece.size()));
    const uint32_t n = receiver_.extract_kept(range.begin, piece.data(), want);
    to.pass_on({range.begin, range.begin + n}, {piece.data(), n}, false, now);
  }
}

}  // namespace rnic::mpa

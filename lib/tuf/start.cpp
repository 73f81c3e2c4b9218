// The part of Session that does the negotiation (negotiation.hpp).
#include <array>

#include "base/starved.hpp"
#include "framing/read_depths.hpp"
#include "tuf/pdu_writer.hpp"
#include "tuf/session.hpp"

namespace rnic::tuf {

using framing::StartFailure;

namespace {

/// Writes IRD and ORD to their fields of the frame. They follow the rules of RFC 6581 s.9.1.
void tell_reads(const framing::ReadDepths& depths, wire::TufStart& frame) {
  frame.has_reads = true;
  frame.ird = depths.ird;
  frame.ord = depths.ord;
}

}  // namespace

Session::Session(const Config& config, framing::Role role, wire::TufKey key,
                 framing::HoldStore& hold, PackStore& pack, Counters& counters,
                 framing::StartEvents& events, base::ByteView private_data,
                 SessionEvents* session_events, const framing::StartOptions& start_options)
    : SessionBase(config, hold,
                  {counters.pdus_in, counters.placed_in_order_octets, counters.placed_early_octets,
                   counters.held_octets, counters.hold_refused, counters.discarded_octets},
                  locator_),
      config_(config),
      role_(role),
      pack_(pack),
      counters_(counters),
      events_(events),
      session_events_(session_events),
      key_(key & wire::kTufKeyMask),
      start_options_(start_options),
      request_data_(private_data.begin(), private_data.end()),
      locator_(config_, hold, counters, session_events) {
  RNIC_CHECK(private_data.size() <= wire::kTufPrivateDataMax);
  start_options_.peer_to_peer = false;  // Go takes the place of an RTR (negotiation.hpp)
}

void Session::established(uint32_t emss, base::Now now) {
  set_emss(emss);
  deadline_ = now + config_.start_timeout;
  RNIC_CHECK(stream() != nullptr);
  own_ = make_start(config_, stream()->traits(), key_);
  if (role_ == framing::Role::Responder) {
    set_state(StartState::AwaitRequest);
    return;
  }
  if (start_options_.exchange_reads) tell_reads(framing::depths_of_request(start_options_), own_);
  const bool made = base::attempt(
      [&] { sender_.set(make_start_frame(wire::kTufRequestMagic, own_, request_data_)); });
  if (!made) return fail(StartFailure::OutOfMemory, {}, now);
  request_data_ = {};
  set_state(StartState::SendRequest);
  stream()->ready();
}

// --- receiving ---

/// The number of octets needed for the next decision; 0: the frame is whole.
size_t Session::wanted() const {
  const bool go = role_ == framing::Role::Responder && state_ != StartState::AwaitRequest;
  return reader_.wanted(go);
}

/// The octets so far can be those of the awaited frame.
bool Session::frame_right() const {
  const wire::TufMagic& magic = role_ == framing::Role::Initiator    ? wire::kTufReplyMagic
                                : state_ == StartState::AwaitRequest ? wire::kTufRequestMagic
                                                                     : wire::kTufGoMagic;
  return reader_.is_right(magic);
}

/// Reads the awaited frame, and fails the start-up if there is no memory for it. \return octets
/// used
size_t Session::parse(base::ByteView octets, base::Now now) {
  return parse_start(octets, now, [&] { return read_frame(octets, now); });
}

size_t Session::read_frame(base::ByteView octets, base::Now now) {
  size_t used = 0;
  while (used < octets.size() && parsing()) {
    const size_t n = std::min(wanted(), octets.size() - used);
    reader_.take(octets.subspan(used, n));
    used += n;
    if (!frame_right()) {
      fail(StartFailure::ForeignFrame, {}, now);
    } else if (wanted() == 0) {
      frame_complete(now);
    }
  }
  return used;
}

void Session::frame_complete(base::Now now) {
  switch (state_) {
    case StartState::AwaitReply: return reply_complete(now);
    case StartState::AwaitRequest: return request_complete(now);
    case StartState::AwaitGo: return begin_framing(now);
    default: return fail(StartFailure::UnexpectedData, {}, now);
  }
}

void Session::request_complete(base::Now now) {
  const wire::TufStart peer = reader_.header();
  const std::vector<uint8_t> frame = reader_.release();
  if (!agree(own_, peer)) return fail(StartFailure::NoCommonMode, {}, now);
  take_agreed(peer);
  set_state(StartState::AwaitDecision);
  events_.request_received(offer_, base::ByteView(frame).subspan(wire::kTufStartSize), now);
}

void Session::take_agreed(const wire::TufStart& peer) {
  agreed_ = *agree(own_, peer);
  negotiated_ = {};
  negotiated_.crc = false;
  negotiated_.markers_send = agreed_.send == FramedSendMode::Markers;
  negotiated_.markers_receive = agreed_.receive == FramedReceiveMode::Markers;
  take_offer(peer);
}

void Session::take_offer(const wire::TufStart& peer) {
  offer_.markers = negotiated_.markers_send;
  offer_.enhanced = peer.has_reads;
  offer_.ird = peer.ird;
  offer_.ord = peer.ord;
  framing::note_reads(offer_, negotiated_);
}

void Session::answer(bool accepted, base::ByteView private_data,
                     const framing::StartOptions& start_options) {
  if (state_ != StartState::AwaitDecision) return;  // failed meanwhile; start_failed() said so
  wire::TufStart reply = own_;
  framing::Negotiated negotiated = negotiated_;
  StartFailure refusal = refusal_;
  if (offer_.has_reads()) {
    const framing::AnsweredReads answer = framing::answer_reads(start_options, offer_);
    if (accepted && !answer.suffice) {
      accepted = false;
      refusal = StartFailure::InsufficientReads;
    }
    negotiated.ird = answer.agreed.ird;
    negotiated.ord = answer.agreed.ord;
    tell_reads(answer.told, reply);
  }
  reply.reject = !accepted;
  reply.chosen_send =
      agreed_.send == FramedSendMode::Align ? wire::kTufModeAlign : wire::kTufModeMarkers;
  reply.chosen_receive =
      agreed_.receive == FramedReceiveMode::Align ? wire::kTufModeAlign : wire::kTufModeMarkers;
  // The frame is made first, since this needs memory: when it fails nothing else has changed.
  sender_.set(make_start_frame(wire::kTufReplyMagic, reply, private_data));
  negotiated_ = negotiated;
  refusal_ = refusal;
  set_state(accepted ? StartState::SendReply : StartState::SendReject);
  stream()->ready();
  if (!accepted) stream()->close();
}

void Session::reply_complete(base::Now now) {
  const wire::TufStart peer = reader_.header();
  const std::vector<uint8_t> frame = reader_.release();
  const base::ByteView data = base::ByteView(frame).subspan(wire::kTufStartSize);
  take_offer(peer);
  if (peer.reject) return fail(StartFailure::RejectedByPeer, data, now);
  if (!agree(own_, peer) || !choices_right(own_, peer)) {
    return fail(StartFailure::NoCommonMode, {}, now);
  }
  take_agreed(peer);
  if (start_options_.exchange_reads && peer.has_reads) {
    const framing::TakenReads taken = framing::take_reads(start_options_, offer_);
    if (taken.error != llp::FramingError::None) {
      return fail(StartFailure::InsufficientReads, {}, now);
    }
    negotiated_.ird = taken.agreed.ird;
    negotiated_.ord = taken.agreed.ord;
  }
  request_data_.assign(data.begin(), data.end());  // for started(), after Go was sent
  sender_.set(make_go());
  set_state(StartState::SendGo);
  stream()->ready();
}

// --- sending ---

llp::Pulled Session::pull_start(uint32_t n, uint64_t offset, llp::Frame& out, base::Now now) {
  const bool has = state_ == StartState::SendRequest || state_ == StartState::SendGo ||
                   state_ == StartState::SendReply || state_ == StartState::SendReject;
  if (!has) return {};
  const uint32_t length = sender_.emit(n, offset, out);
  if (length == 0) return {};
  const bool last = !sender_.pending();
  if (last) start_frame_sent(offset + length, now);
  return {.length = length, .push = last, .atomic = false, .tag = framing::kStartTag};
}

void Session::start_frame_sent(uint64_t end, base::Now now) {
  send_grid_ = MarkerGrid();
  if (agreed_.send == FramedSendMode::Markers) send_grid_ = MarkerGrid(end, agreed_.send_interval);
  switch (state_) {
    case StartState::SendRequest: set_state(StartState::AwaitReply); break;
    case StartState::SendReply: set_state(StartState::AwaitGo); break;
    case StartState::SendGo: begin_framing(now); break;
    case StartState::SendReject: fail(refusal_, {}, now); break;
    default: break;
  }
}

/// Both directions are framed from here on.
void Session::begin_framing(base::Now now) {
  RNIC_CHECK(user() != nullptr);  // it was bound before accept(), or before the Reply
  set_state(StartState::Done);
  static_cast<void>(reader_.release());
  ReceiveLayout layout;
  layout.mode = agreed_.receive;
  layout.key = agreed_.receive_key;
  layout.max_pdu = agreed_.max_pdu_in;
  const bool prefixed_in = agreed_.receive == FramedReceiveMode::Markers || agreed_.pack_in;
  layout.format = prefixed_in ? FrameFormat{} : FrameFormat::opaque();
  if (agreed_.receive == FramedReceiveMode::Markers) {
    layout.grid = MarkerGrid(reader_.received(), agreed_.receive_interval);
  }
  locator_.start(reader_.received(), layout, prefixed_in ? kUlpduLengthSize : 0);
  receiver_.start(reader_.received());
  note_mulpdu();
  ++counters_.starts;
  user()->mulpdu_changed(mulpdu());
  const std::vector<uint8_t> data = std::move(request_data_);
  request_data_ = {};
  events_.started(negotiated_, data, now);
  user()->may_send();
  ready();
}

void Session::on_timer(base::Now now) {
  if (now < next_deadline()) return;
  fail(StartFailure::TimedOut, {}, now);
}

void Session::fail(StartFailure why, base::ByteView private_data, base::Now now) {
  set_state(StartState::Failed);
  tell_failure(why, private_data, now);
}

void Session::tell_failure(StartFailure why, base::ByteView private_data, base::Now now) {
  const bool rejected = why == StartFailure::RejectedByPeer || why == StartFailure::RejectedLocally;
  ++(rejected ? counters_.start_rejects : counters_.start_failures);
  receiver_.discard();
  close();
  events_.start_failed(why, private_data, now);
}

}  // namespace rnic::tuf

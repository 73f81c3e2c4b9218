#include "mpa/session.hpp"

#include <algorithm>
#include <array>

#include "mpa/fpdu_writer.hpp"

namespace rnic::mpa {
namespace {

/// DDP is not asked for less: a DDP header and a little.
constexpr uint32_t kUsefulRoom = 18;

}  // namespace

// --- sending ---

llp::Pulled Session::Impl::pull(uint32_t n, uint64_t offset, llp::Frame& out, base::Now now) {
  if (is_sending(state_)) return pull_fpdu(n, offset, out, now);
  if (!starting()) return {};
  llp::Pulled pulled;
  if (last_message_.pending()) {
    pulled.length = last_message_.emit(n, offset, out);
    pulled.tag = kLastMessageTag;
    pulled.push = !last_message_.pending();
    return pulled;
  }
  if (!sender_.pending()) return {};
  pulled.length = sender_.emit(n, offset, out);
  pulled.tag = kStartTag;
  pulled.push = !sender_.pending();
  if (!sender_.pending()) start_frame_sent(now);
  return pulled;
}

/// A whole segment (n == EMSS) has room for MULPDU; what is left of one takes only a ULPDU that
/// fits exactly here and ends its message (RFC 5044 s.4.5). The FPDU never exceeds n: with an EMSS
/// below 128 the ULPDU is shorter than the MULPDU that is reported.
llp::Pulled Session::Impl::pull_fpdu(uint32_t n, uint64_t offset, llp::Frame& out, base::Now now) {
  const bool whole_only = n < emss_;
  const uint32_t before = out.length();
  const uint32_t max =
      std::min(mulpdu(), ulpdu_room(send_grid_, offset, std::min(n, out.room_left())));
  if (max < kUsefulRoom) return {};
  FpduWriter writer(send_grid_, offset, agreed_.crc, max, out);
  const llp::PulledUlpdu ulpdu = user_->pull_ulpdu(max, whole_only, writer, now);
  if (ulpdu.length == 0) return {};
  RNIC_CHECK(writer.finish());
  ++counters_.fpdus_out;
  counters_.markers_out += writer.markers();
  return {out.length() - before, ulpdu.last, true, ulpdu.tag};
}

bool Session::Impl::all_fits(uint32_t octets) const {
  if (!full_operation()) return last_message_.unsent() + sender_.unsent() <= octets;
  if (!is_sending(state_)) return true;
  constexpr uint32_t kMostOverhead = 2 + 3 + 4;  // length, pad, CRC
  const uint32_t marker_octets =
      agreed_.markers_send ? (octets / wire::kMpaMarkerInterval + 1) * wire::kMpaMarkerSize : 0;
  return octets > marker_octets && user_->all_fits(octets - marker_octets, kMostOverhead);
}

bool Session::Impl::rebuild(const llp::RecordTag& tag, uint64_t offset, uint32_t length,
                            llp::Frame& out) {
  if (tag == kStartTag) return sender_.rebuild(offset, length, out);
  if (tag == kLastMessageTag) return last_message_.rebuild(offset, length, out);
  const uint32_t before = out.length();
  FpduWriter writer(send_grid_, offset, agreed_.crc, wire::kMpaUlpduMax, out);
  if (!user_->rebuild_ulpdu(tag, writer)) return false;
  RNIC_CHECK(writer.finish() && out.length() - before == length);
  ++counters_.fpdus_rebuilt;
  counters_.markers_out += writer.markers();
  return true;
}

void Session::Impl::emss_changed(uint32_t emss) {
  emss_ = emss;
  if (!full_operation() || mulpdu() == reported_mulpdu_) return;
  reported_mulpdu_ = mulpdu();
  user_->mulpdu_changed(reported_mulpdu_);
}

// --- receiving ---

llp::InspectVerdict Session::Impl::inspect(base::Range range, base::ByteView octets,
                                           base::Now now) {
  if (full_operation()) return receiver_.inspect(range, octets, now);
  if (!parsing() || receiver_.can_keep(range)) return llp::InspectVerdict::Accept;
  // The start frame has room of its own, so that it needs no hold space, which others may have used
  // up. Octets behind a Request end the start-up and need none either.
  const bool frame_only =
      role_ == framing::Role::Responder || parser_.frame_part(octets) == octets.size();
  if (receiver_.in_order(range) && frame_only) return llp::InspectVerdict::Accept;
  ++counters_.hold_refused;
  return llp::InspectVerdict::NoRoom;
}

uint32_t Session::Impl::sure_room() const { return receiver_.sure_room(); }

/// A start frame has room of its own; the octets behind it are asked about when it is whole.
uint32_t Session::Impl::takes(base::Range range, base::ByteView octets) {
  if (full_operation()) return receiver_.takes(range, octets);
  const auto all = static_cast<uint32_t>(octets.size());
  return parsing() ? std::min(all, static_cast<uint32_t>(parser_.wanted())) : all;
}

void Session::Impl::place(base::Range range, base::ByteView octets, base::Now now) {
  if (full_operation()) return receiver_.place(range, octets, now);
  const bool in_order = receiver_.in_order(range);
  if (state_ == StartState::Failed || state_ == StartState::SendReject ||
      state_ == StartState::Left) {
    counters_.discarded_octets += range.size();
  } else if (!parsing()) {
    fail(framing::StartFailure::UnexpectedData, {}, now);
  } else if (!in_order) {
    return receiver_.keep(range, octets, now);
  } else {
    const size_t used = parse(octets, receiver_.held() != 0, now);
    receiver_.arrived(range.begin + used);
    const base::Range behind{range.begin + used, range.end};
    if (state_ == StartState::HandedOver) return;
    if (full_operation() && !behind.empty()) {
      receiver_.place(behind, octets.subspan(used), now);
    }
  }
  if (in_order) receiver_.arrived(range.end);
}

void Session::Impl::ordered(uint64_t offset, base::Now now) {
  // Octets of the start frame that came ahead of the order.
  std::array<uint8_t, wire::kMpaStartHeaderSize + wire::kMpaPrivateDataMax> again;
  while (parsing() && received_ < offset) {
    const auto want = static_cast<uint32_t>(
        std::min<uint64_t>({parser_.wanted(), offset - received_, again.size()}));
    const uint32_t n = receiver_.take_back(received_, again.data(), want);
    if (n == 0) break;
    parse({again.data(), n}, receiver_.held() != 0 && n == parser_.wanted(), now);
  }
  if (state_ == StartState::HandedOver) return receiver_.arrived(received_);
  receiver_.arrived(offset);
  if (full_operation()) receiver_.ordered(offset, now);
}

// --- the end ---

void Session::Impl::peer_finished(base::Now now) {
  peer_finished_ = true;
  if (left()) return events_.peer_left(now);
  if (state_ == StartState::SendReject) return;  // the answer is still on its way
  if (starting()) return fail(end_of_stream(state_, false), {}, now);
  if (full_operation()) user_->peer_finished(receiver_.at_boundary(), now);
}

void Session::Impl::ended(StreamEnd how, base::Now now) {
  const StartState before = state_;
  if (before == StartState::Ended) return;
  set_state(StartState::Ended);
  stream_ = nullptr;
  receiver_.attach(nullptr);
  const bool opened = before != StartState::Idle;
  if (is_starting(before) || !opened) {
    const bool by_peer = how == StreamEnd::PeerReset || how == StreamEnd::Closed;
    const bool reset = how == StreamEnd::PeerReset;
    tell_failure(by_peer ? end_of_stream(before, reset) : framing::start_failure_of(how, opened),
                 {}, now);
  }
  receiver_.discard();
  if (user_ != nullptr) user_->ended(how, now);
  events_.stream_ended(how, now);  // the owner may destroy the session from here on
}

// --- the front ---

Session::Session(const Config& config, framing::Role role, framing::HoldStore& hold,
                 Counters& counters, framing::StartEvents& events, base::ByteView private_data,
                 const framing::StartWish& wish)
    : impl_(std::make_unique<Impl>(config, role, hold, counters, events, private_data, wish)) {}
Session::~Session() = default;

void Session::attach(llp::Stream& stream) { impl_->attach(stream); }
void Session::bind(llp::FramingUser& user) { impl_->bind(user); }
void Session::unbind() { impl_->unbind(); }
void Session::take_over(uint32_t emss, uint64_t received, base::ByteView last_message,
                        base::Now now) {
  impl_->take_over(emss, received, last_message, now);
}
void Session::accept(base::ByteView private_data, base::Now, const framing::StartWish& wish) {
  impl_->answer(true, private_data, wish);
}
void Session::reject(base::ByteView private_data, base::Now, const framing::StartWish& wish) {
  impl_->answer(false, private_data, wish);
}
size_t Session::private_data_max() const { return impl_->private_data_max(); }
uint64_t Session::received() const { return impl_->received(); }
uint64_t Session::sent() const { return impl_->sent(); }
bool Session::left() const { return impl_->left(); }
void Session::hand_over_kept(llp::StreamSwitch& to, base::Now now) {
  impl_->hand_over_kept(to, now);
}
base::Now Session::next_deadline() const { return impl_->next_deadline(); }
void Session::on_timer(base::Now now) { impl_->on_timer(now); }
const framing::Negotiated& Session::negotiated() const { return impl_->negotiated(); }
bool Session::full_operation() const { return impl_->full_operation(); }
uint64_t Session::held() const { return impl_->held(); }
uint64_t Session::arrived() const { return impl_->arrived(); }

void Session::established(uint32_t emss, base::Now now) { impl_->established(emss, now); }
llp::Pulled Session::pull(uint32_t n, uint64_t offset, llp::Frame& out, base::Now now) {
  return impl_->pull(n, offset, out, now);
}
bool Session::rebuild(const llp::RecordTag& tag, uint64_t offset, uint32_t length,
                      llp::Frame& out) {
  return impl_->rebuild(tag, offset, length, out);
}
void Session::released(const llp::RecordTag& tag, uint64_t end_offset) {
  impl_->released(tag, end_offset);
}
void Session::clipped(base::Range range) { impl_->clipped(range); }
llp::InspectVerdict Session::inspect(base::Range range, base::ByteView octets, base::Now now) {
  return impl_->inspect(range, octets, now);
}
uint32_t Session::sure_room() const { return impl_->sure_room(); }
uint32_t Session::takes(base::Range range, base::ByteView octets) {
  return impl_->takes(range, octets);
}
void Session::place(base::Range range, base::ByteView octets, bool, base::Now now) {
  impl_->place(range, octets, now);
}
void Session::ordered(uint64_t offset, base::Now now) { impl_->ordered(offset, now); }
void Session::emss_changed(uint32_t emss) { impl_->emss_changed(emss); }
uint32_t Session::receive_room() const { return impl_->receive_room(); }
bool Session::all_fits(uint32_t octets) const { return impl_->all_fits(octets); }
bool Session::fills_segment(uint32_t octets) const { return impl_->fills_segment(octets); }
void Session::peer_finished(base::Now now) { impl_->peer_finished(now); }
void Session::ended(StreamEnd how, base::Now now) { impl_->ended(how, now); }

uint32_t Session::mulpdu() const { return impl_->mulpdu(); }
uint8_t Session::version() const { return impl_->negotiated().revision == 0 ? 0 : 1; }
void Session::ready() { impl_->ready(); }
void Session::discard_received() { impl_->discard_received(); }
void Session::close() { impl_->close(); }
void Session::abort() { impl_->abort(); }
bool Session::may_send() const { return impl_->may_send(); }

}  // namespace rnic::mpa

#include "mpa/session.hpp"

#include <algorithm>
#include <array>

#include "framing/mulpdu.hpp"
#include "mpa/fpdu_writer.hpp"

namespace rnic::mpa {
namespace {

using framing::kStartTag;

/// Marks the record of the last streaming message, as kStartTag marks the records of start frames.
constexpr llp::RecordTag kLastMessageTag{kStartTag.a, 1};

}  // namespace

// --- sending ---

llp::Pulled Session::pull(uint32_t n, uint64_t offset, llp::Frame& out, base::Now now) {
  if (is_sending(state_)) return pull_fpdu(n, offset, out, now);
  if (!starting()) return {};
  llp::Pulled pulled;
  if (start_->last_message.pending()) {
    pulled.length = start_->last_message.emit(n, offset, out);
    pulled.tag = kLastMessageTag;
    pulled.push = !start_->last_message.pending();
    return pulled;
  }
  if (!start_->sender.pending()) return {};
  pulled.length = start_->sender.emit(n, offset, out);
  pulled.tag = kStartTag;
  pulled.push = !start_->sender.pending();
  if (!start_->sender.pending()) start_frame_sent(now);
  return pulled;
}

/// An empty segment (n == EMSS) has room for a ULPDU of MULPDU octets; the rest of a partly filled
/// one takes only a ULPDU that fits and ends its message (RFC 5044 s.4.5). The FPDU never exceeds
/// n: with an EMSS below 128 the ULPDU is shorter than the MULPDU that is reported.
llp::Pulled Session::pull_fpdu(uint32_t n, uint64_t offset, llp::Frame& out, base::Now now) {
  const bool whole_only = n < emss();
  const uint32_t most = mulpdu();
  const uint32_t max = std::min(most, ulpdu_room(send_grid_, offset, std::min(n, out.room_left())));
  if (max < framing::kUsefulRoom) return {};
  FpduWriter writer(send_grid_, offset, agreed_.crc, max, out, most);
  const llp::PulledUlpdu ulpdu = user()->pull_ulpdu(max, whole_only, writer, now);
  counters_.fpdus_out += writer.fpdus();
  counters_.markers_out += writer.markers();
  if (ulpdu.length == 0) return {};
  RNIC_CHECK(writer.complete());
  return {writer.size(), ulpdu.last, true, ulpdu.more, {ulpdu.tag.a, ulpdu.tag.b}};
}

bool Session::all_fits(uint32_t octets) const {
  if (!full_operation()) {
    return start_ == nullptr || start_->last_message.unsent() + start_->sender.unsent() <= octets;
  }
  if (!is_sending(state_)) return true;
  constexpr uint32_t kMostOverhead = 2 + 3 + 4;  // length, pad, CRC
  const uint32_t marker_octets =
      agreed_.markers_send ? (octets / wire::kMpaMarkerInterval + 1) * wire::kMpaMarkerSize : 0;
  return octets > marker_octets && user()->all_fits(octets - marker_octets, kMostOverhead);
}

bool Session::rebuild(const llp::RecordTag& tag, uint64_t offset, uint32_t length,
                      llp::Frame& out) {
  if (tag == kStartTag || tag == kLastMessageTag) {
    if (start_ == nullptr) return false;
    return tag == kStartTag ? start_->sender.rebuild(offset, length, out)
                            : start_->last_message.rebuild(offset, length, out);
  }
  const uint32_t before = out.length();
  FpduWriter writer(send_grid_, offset, agreed_.crc, wire::kMpaUlpduMax, out);
  if (!user()->rebuild_ulpdu(tag, writer)) return false;
  RNIC_CHECK(writer.complete() && out.length() - before == length);
  ++counters_.fpdus_rebuilt;
  counters_.markers_out += writer.markers();
  return true;
}

void Session::emss_changed(uint32_t emss) {
  set_emss(emss);
  if (full_operation()) tell_mulpdu();
}

void Session::released(const llp::RecordTag& tag, uint64_t end_offset) {
  if (tag != kStartTag && tag != kLastMessageTag) return user()->released_ulpdu(tag);
  if (start_ == nullptr) return;
  (tag == kStartTag ? start_->sender : start_->last_message).acknowledged(end_offset);
  end_start_up();
}

bool Session::fills_segment(uint32_t octets) const {
  constexpr uint32_t kOverhead = 6;  // length and CRC; pads and markers are left out
  return !is_sending(state_) || user()->fills_segment(octets, kOverhead);
}

uint8_t Session::version() const { return negotiated().revision == 0 ? 0 : 1; }

void Session::ready() {
  if (is_sending(state_) && stream() != nullptr) stream()->ready();
}

// --- receiving ---

llp::InspectVerdict Session::inspect(base::Range range, base::ByteView octets, base::Now now) {
  if (full_operation()) return receiver_.inspect(range, octets, now);
  if (!parsing() || receiver_.can_keep(range)) return llp::InspectVerdict::Accept;
  // The start frame has room of its own, so it needs no hold space, which other sessions may have
  // used up. Octets behind a Request end the start-up and need no hold space either.
  const bool frame_only =
      role_ == framing::Role::Responder || start_->parser.frame_part(octets) == octets.size();
  if (receiver_.in_order(range) && frame_only) return llp::InspectVerdict::Accept;
  ++counters_.hold_refused;
  return llp::InspectVerdict::NoRoom;
}

void Session::place(base::Range range, base::ByteView octets, bool, base::Now now) {
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

void Session::ordered(uint64_t offset, base::Now now) {
  // Parses octets of the start frame that came ahead of the order.
  std::array<uint8_t, wire::kMpaStartHeaderSize + wire::kMpaPrivateDataMax> again;
  while (parsing() && received_ < offset) {
    const auto want = static_cast<uint32_t>(
        std::min<uint64_t>({start_->parser.wanted(), offset - received_, again.size()}));
    const uint32_t n = receiver_.extract_kept(received_, again.data(), want);
    if (n == 0) break;
    parse({again.data(), n}, receiver_.held() != 0 && n == start_->parser.wanted(), now);
  }
  if (state_ == StartState::HandedOver) return receiver_.arrived(received_);
  receiver_.arrived(offset);
  if (!full_operation()) return;
  end_start_up();
  receiver_.ordered(offset, now);
}

bool Session::place_ordered(base::Range range, base::ByteView octets, base::Now now) {
  if (!full_operation()) {
    place(range, octets, true, now);
    return false;
  }
  end_start_up();
  return receiver_.place_ordered(range, octets, now);
}

// --- the end ---

/// RFC 5044 s.8: after an error nothing more goes up; TCP stays open.
void Session::broken(framing::PduError error, base::Now now) {
  const bool crc = error == framing::PduError::Crc;
  ++(crc ? counters_.crc_errors : counters_.marker_errors);
  user()->framing_error(crc ? llp::FramingError::Crc : llp::FramingError::MarkerMismatch, now);
  if (!may_send()) close();
}

framing::StartFailure Session::end_of_stream(StartState state, bool reset) const {
  const bool asked = state == StartState::AwaitReply;
  const bool asking = state == StartState::SendRequest;
  const bool silent = start_->parser.empty() && (asked || (asking && reset));
  if (!silent) return framing::StartFailure::StreamEnded;
  return reset ? framing::StartFailure::ResetBeforeReply : framing::StartFailure::NoReply;
}

void Session::peer_finished(base::Now now) {
  peer_finished_ = true;
  if (left()) return events_.peer_left(now);
  if (state_ == StartState::SendReject) return;  // our Reply is still to be sent
  if (starting()) return fail(end_of_stream(state_, false), {}, now);
  if (full_operation()) tell_peer_finished(now);
}

/// The reason of the failure when the stream ends in this state of the start-up.
framing::StartFailure Session::failure_of(StartState state, StreamEnd how) const {
  const bool reset = how == StreamEnd::PeerReset;
  if (reset || how == StreamEnd::Closed) return end_of_stream(state, reset);
  return framing::start_failure_of(how, state != StartState::Idle);
}

void Session::ended(StreamEnd how, base::Now now) {
  const StartState before = state_;
  if (before == StartState::Ended) return;
  set_state(StartState::Ended);
  detach();
  if (is_starting(before) || before == StartState::Idle) {
    tell_failure(failure_of(before, how), {}, now);
  }
  tell_ended(events_, how, now);
}

}  // namespace rnic::mpa

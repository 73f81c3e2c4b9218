#include "tuf/session.hpp"

#include <algorithm>
#include <array>

#include "framing/mulpdu.hpp"
#include "tuf/pdu_writer.hpp"

namespace rnic::tuf {
namespace {

/// The `a` of the tags of packed framing PDUs; no tag of DDP has this value.
constexpr uint64_t kPackedTag = ~0ull - 1;

using framing::kMulpduMax;
using framing::kMulpduMin;
using framing::kNone;
using framing::kStartTag;
using framing::kUsefulRoom;

}  // namespace

// --- sending ---

uint32_t Session::mulpdu() const {
  uint32_t overhead = prefixed() ? kUlpduLengthSize : 0;
  uint32_t most = wire::kTufPduMax - overhead;
  if (agreed_.send == FramedSendMode::Markers) {
    const uint32_t interval = agreed_.send_interval;
    overhead += (emss() + interval - 1) / interval * wire::kTufMarkerSize;
    most = std::min(agreed_.max_pdu_out - kUlpduLengthSize, kMulpduMax);
  } else {
    overhead += wire::kTufHeaderSize;
  }
  const uint32_t fits = emss() > overhead ? emss() - overhead : 0;
  return std::clamp(std::min(fits, most), kMulpduMin, kMulpduMax);
}

llp::Pulled Session::pull(uint32_t n, uint64_t offset, llp::Frame& out, base::Now now) {
  if (state_ != StartState::Done) return pull_start(n, offset, out, now);
  n = std::min(n, out.room_left());
  return agreed_.send == FramedSendMode::Align ? pull_frame(n, offset, out, now)
                                               : pull_marked(n, offset, out, now);
}

/// Pulls a framing PDU, which begins its segment and is alone in it (s.5.1).
llp::Pulled Session::pull_frame(uint32_t n, uint64_t offset, llp::Frame& out, base::Now now) {
  const uint32_t overhead = wire::kTufHeaderSize + (prefixed() ? kUlpduLengthSize : 0);
  if (n < emss() || n < overhead + kUsefulRoom) return {};
  const uint32_t before = out.length();
  PduWriter writer(send_grid_, offset, wire::kTufHeaderSize, prefixed(),
                   std::min(n - overhead, mulpdu()), out);
  const llp::PulledUlpdu first =
      user()->pull_ulpdu(std::min(n - overhead, mulpdu()), false, writer, now);
  if (first.length == 0) return {};
  RNIC_CHECK(writer.complete());
  llp::Pulled pulled{.length = 0, .push = first.last, .atomic = true, .tag = first.tag};
  ++counters_.frames_out;
  ++counters_.pdus_out;
  if (agreed_.pack_out && pack_.free() >= 2) {
    const uint32_t head = pack_.begin(first.tag);
    const uint32_t more = pack_more(n, offset, head, out, pulled.push, now);
    if (more == 0) {
      pack_.give(head);
    } else {
      pulled.tag = {kPackedTag, head};
      counters_.packed_pdus_out += more + 1;
    }
  }
  pulled.length = out.length() - before;
  wire::store_tuf_header(
      writer.frame(),
      {static_cast<uint16_t>(pulled.length - wire::kTufHeaderSize), agreed_.send_key});
  return pulled;
}

/// Packs further ULPDUs that fit as a whole and end their messages (s.5). \return their number
uint32_t Session::pack_more(uint32_t n, uint64_t offset, uint32_t first, llp::Frame& out,
                            bool& push, base::Now now) {
  uint32_t count = 0;
  const uint32_t limit = std::min(n, wire::kTufHeaderSize + wire::kTufPduMax);
  for (uint32_t last = first; pack_.free() != 0;) {
    const uint32_t used = out.length() + kUlpduLengthSize;
    if (used + kUsefulRoom > limit) break;
    const uint32_t max = std::min(limit - used, mulpdu());
    PduWriter writer(send_grid_, offset + out.length(), 0, true, max, out);
    const llp::PulledUlpdu ulpdu = user()->pull_ulpdu(max, true, writer, now);
    if (ulpdu.length == 0) break;
    RNIC_CHECK(writer.complete());
    last = pack_.append(last, ulpdu.tag);
    push = push || ulpdu.last;
    ++count;
    ++counters_.pdus_out;
  }
  return count;
}

llp::Pulled Session::pull_marked(uint32_t n, uint64_t offset, llp::Frame& out, base::Now now) {
  uint64_t content = 0;
  for (uint64_t at = offset; at < offset + n;) {
    at = send_grid_.after(at);
    const uint64_t run = std::min(send_grid_.next(at), offset + n);
    if (run > at) content += run - at;
    at = std::max(run, at);
  }
  if (content < kUlpduLengthSize + kUsefulRoom) return {};
  const auto room = static_cast<uint32_t>(content) - kUlpduLengthSize;
  const uint32_t max = std::min(mulpdu(), room);
  const uint32_t before = out.length();
  PduWriter writer(send_grid_, offset, 0, true, max, out);
  const llp::PulledUlpdu ulpdu = user()->pull_ulpdu(max, n < emss(), writer, now);
  if (ulpdu.length == 0) return {};
  RNIC_CHECK(writer.complete());
  ++counters_.pdus_out;
  counters_.markers_out += writer.markers();
  return {.length = out.length() - before, .push = ulpdu.last, .atomic = true, .tag = ulpdu.tag};
}

bool Session::rebuild(const llp::RecordTag& tag, uint64_t offset, uint32_t length,
                      llp::Frame& out) {
  if (tag == kStartTag) return sender_.rebuild(offset, length, out);
  const uint32_t before = out.length();
  const bool align = agreed_.send == FramedSendMode::Align;
  uint32_t header = align ? wire::kTufHeaderSize : 0;
  uint8_t* frame = nullptr;
  uint32_t node = tag.a == kPackedTag ? static_cast<uint32_t>(tag.b) : kNone;
  do {
    PduWriter writer(send_grid_, offset + out.length() - before, header, prefixed(),
                     wire::kTufPduMax, out);
    const llp::RecordTag& one = node == kNone ? tag : pack_[node].tag;
    if (!user()->rebuild_ulpdu(one, writer)) return false;
    RNIC_CHECK(writer.complete());
    if (frame == nullptr) frame = writer.frame();
    header = 0;
    if (node != kNone) node = pack_[node].next;
  } while (node != kNone);
  RNIC_CHECK(out.length() - before == length);
  if (align) {
    wire::store_tuf_header(
        frame, {static_cast<uint16_t>(length - wire::kTufHeaderSize), agreed_.send_key});
  }
  ++counters_.frames_rebuilt;
  return true;
}

/// Makes a piece of a framing PDU shorter if it would look like a whole one (s.5.2).
uint32_t Session::cut(base::ByteView piece) {
  const auto size = static_cast<uint32_t>(piece.size());
  if (agreed_.send != FramedSendMode::Align || !wire::is_tuf_frame(piece, agreed_.send_key))
    return size;
  ++counters_.lookalikes_avoided;
  return size - 1;
}

void Session::released(const llp::RecordTag& tag, uint64_t end_offset) {
  if (tag == kStartTag) return sender_.acknowledged(end_offset);
  if (tag.a != kPackedTag) return user()->released_ulpdu(tag);
  for (auto node = static_cast<uint32_t>(tag.b); node != kNone;) {
    const PackedUlpdu one = pack_.give(node);
    node = one.next;
    user()->released_ulpdu(one.tag);
  }
}

void Session::emss_changed(uint32_t emss) {
  set_emss(emss);
  if (full_operation() && tell_mulpdu()) ++counters_.emss_notices;
}

void Session::ready() {
  if (full_operation() && stream() != nullptr) stream()->ready();
}

// --- receiving ---

llp::InspectVerdict Session::inspect(base::Range range, base::ByteView octets, base::Now now) {
  if (full_operation()) return receiver_.inspect(range, octets, now);
  if (receiver_.can_keep(range)) return llp::InspectVerdict::Accept;
  ++counters_.hold_refused;
  return llp::InspectVerdict::NoRoom;
}

void Session::place(base::Range range, base::ByteView octets, bool, base::Now now) {
  if (state_ == StartState::Done) return receiver_.place(range, octets, now);
  const bool in_order = receiver_.in_order(range);
  if (state_ == StartState::Failed || state_ == StartState::SendReject) {
    counters_.discarded_octets += range.size();
  } else if (!in_order) {
    return receiver_.keep(range, octets, now);
  } else if (!parsing()) {
    fail(framing::StartFailure::UnexpectedData, {}, now);
  } else {
    const size_t used = parse(octets, now);
    receiver_.arrived(range.begin + used);
    const base::Range behind{range.begin + used, range.end};
    if (!behind.empty() && state_ == StartState::Done) {
      receiver_.clipped(behind);
      receiver_.place(behind, octets.subspan(used), now);
    } else if (!behind.empty() && starting()) {
      fail(framing::StartFailure::UnexpectedData, {}, now);
    }
  }
  if (in_order) receiver_.arrived(range.end);
}

void Session::ordered(uint64_t offset, base::Now now) {
  // Parses octets of a start frame that came ahead of the order.
  std::array<uint8_t, wire::kTufStartSize + wire::kTufPrivateDataMax> again;
  while (parsing() && reader_.received() < offset) {
    const auto want = static_cast<uint32_t>(
        std::min<uint64_t>({wanted(), offset - reader_.received(), again.size()}));
    const uint32_t n = receiver_.extract_kept(reader_.received(), again.data(), want);
    if (n == 0) break;
    parse({again.data(), n}, now);
  }
  receiver_.arrived(offset);
  if (state_ == StartState::Done) receiver_.ordered(offset, now);
}

// --- the end ---

/// After an error nothing more goes up, and TCP stays open for a Terminate.
void Session::broken(framing::PduError error, base::Now now) {
  switch (error) {
    case framing::PduError::BadKey: ++counters_.bad_key_errors; break;
    case framing::PduError::BadLength: ++counters_.bad_length_errors; break;
    case framing::PduError::BadMarker: ++counters_.bad_marker_errors; break;
    case framing::PduError::PduTooLong: ++counters_.pdu_too_long_errors; break;
    case framing::PduError::Crc:
    case framing::PduError::None: break;
  }
  if (session_events_ != nullptr) session_events_->stream_broken(error, now);
  user()->framing_error(llp::FramingError::MarkerMismatch, now);
}

void Session::peer_finished(base::Now now) {
  if (state_ == StartState::SendReject) return;  // our Reply is still to be sent
  if (starting()) return fail(framing::StartFailure::StreamEnded, {}, now);
  if (state_ == StartState::Done) tell_peer_finished(now);
}

void Session::ended(StreamEnd how, base::Now now) {
  const StartState before = state_;
  if (before == StartState::Ended) return;
  set_state(StartState::Ended);
  detach();
  const bool opened = before != StartState::Idle;
  if (is_starting(before) || !opened) tell_failure(framing::start_failure_of(how, opened), {}, now);
  tell_ended(events_, how, now);
}

}  // namespace rnic::tuf

#include "tuf/framed_sender.hpp"

#include <algorithm>
#include <array>

#include "base/check.hpp"
#include "base/fail.hpp"

namespace rnic::tuf {

using base::fail;

namespace {

/// Makes the RecordTag of a record: the place of its batch in the ring, and the part of the batch
/// that the record is.
llp::RecordTag tag_of(const Batch& b, uint32_t done, bool last) {
  return {b.at, uint64_t{done} << 32 | b.count << 1 | (last ? 1u : 0u)};
}
uint32_t done_before(const llp::RecordTag& tag) { return static_cast<uint32_t>(tag.b >> 32); }
uint32_t count_of(const llp::RecordTag& tag) { return static_cast<uint32_t>(tag.b) >> 1; }
bool is_last(const llp::RecordTag& tag) { return (tag.b & 1) != 0; }

}  // namespace

const char* to_string(SendResult result) {
  switch (result) {
    case SendResult::Ok: return "ok";
    case SendResult::MessageSize: return "EMSGSIZE: the size is outside of what can be sent now";
    case SendResult::Full: return "the ring is full";
    case SendResult::Malformed: return "the PDU's length field does not tell its length";
    case SendResult::Closed: return "the stream is closed";
  }
  return "unknown";
}

FramedSender::FramedSender(const StreamConfig& config, uint8_t* ring, Counters& counters)
    : counters_(counters),
      ring_(ring, config.ring_octets),
      packing_(config.framing.packing),
      emergency_(config.framing.emergency),
      emsgsize_on_growth_(config.framing.refuse_on_growth),
      interval_(config.framing.send_interval) {
  layout_.format = config.framing.format;
  layout_.max_pdu = config.framing.max_frame;
}

// --- layout ---

Status FramedSender::set_mode(FramedSendMode mode, wire::TufKey key) {
  if (mode == FramedSendMode::Markers && !layout_.format.tells_length()) {
    return fail(ErrorCode::InvalidArgument,
                "marker mode needs PDUs that tell their length: choose such a FrameFormat");
  }
  const bool old_markers =
      mode == FramedSendMode::Markers && layout_.grid.on() && released_ != pulled_;
  if (mode != layout_.mode && ((mode == FramedSendMode::Markers && has_unsent()) || old_markers)) {
    return fail(ErrorCode::WrongState,
                "marker mode begins at a known octet: wait until what was submitted is sent");
  }
  if (mode == FramedSendMode::Align) {
    // s.5: the key stays the same for the life of the direction.
    const wire::TufKey masked = key & wire::kTufKeyMask;
    if (layout_.key && masked != *layout_.key) {
      return fail(ErrorCode::InvalidArgument, "the direction has its key already: use that");
    }
    layout_.key = masked;
  }
  if (mode == FramedSendMode::Markers && layout_.mode != FramedSendMode::Markers) {
    layout_.grid = MarkerGrid(pulled_, interval_);
    submitted_ = pulled_;
  }
  layout_.mode = mode;
  return {};
}

Status FramedSender::set_interval(uint16_t octets) {
  if (octets < kIntervalMin) {
    return fail(ErrorCode::InvalidArgument, "a marker interval is 16 to 65535 octets");
  }
  if (layout_.mode == FramedSendMode::Markers &&
      !layout_.grid.change_interval(submitted_, octets, released_)) {
    return fail(ErrorCode::WrongState,
                "the interval was changed just now: wait for the peer's ACK");
  }
  interval_ = octets;
  return {};
}

// --- application side ---

uint32_t FramedSender::usable_emss() const {
  const uint32_t emss = emss_.visible();
  if (layout_.mode == FramedSendMode::Align) return aligned_max(emss);
  if (layout_.mode != FramedSendMode::Markers) return emss;
  // The first octet of a segment may be a marker.
  const uint32_t interval = layout_.grid.interval();
  const uint32_t markers = (emss + interval - 1) / interval * wire::kTufMarkerSize;
  return emss > markers ? emss - markers : 0;
}

uint32_t FramedSender::pdu_limit() const {
  const uint32_t emss = emss_.visible();
  switch (layout_.mode) {
    case FramedSendMode::Plain: return Submission::kLongest;
    case FramedSendMode::Atomic: return std::min(emss, Submission::kLongest);
    case FramedSendMode::Align: {
      const uint32_t most = aligned_max(emss);
      const bool small = emergency_ && emss < wire::kTufEmergencyPdu;
      return small ? std::max(most, wire::kTufEmergencyPdu) : most;
    }
    case FramedSendMode::Markers:
      return std::min(layout_.max_pdu, marked_pdu_max(layout_.grid, submitted_));
  }
  return 0;
}

SendResult FramedSender::refuse_size() {
  count_shared(counters_.message_size_errors);
  return SendResult::MessageSize;
}

SendResult FramedSender::send(base::ByteView pdu) {
  if (emsgsize_on_growth_ && emss_.take_growth()) return refuse_size();
  if (pdu.empty() || pdu.size() > pdu_limit()) return refuse_size();
  const bool framed =
      layout_.mode == FramedSendMode::Align || layout_.mode == FramedSendMode::Markers;
  const FrameFormat& format = layout_.format;
  if (framed && format.tells_length() && format.length_of(pdu) != pdu.size()) {
    return SendResult::Malformed;
  }
  if (!ring_.has_room(pdu.size())) return SendResult::Full;
  if (layout_.mode == FramedSendMode::Markers) {
    submitted_ = layout_.grid.end_of(submitted_, pdu.size());
  }
  ring_.submit(layout_.mode, pdu);
  return SendResult::Ok;
}

// --- owner's side ---

/// The number of octets of the open batch in the next record. A part of a framing PDU must not look
/// like a whole one (s.5.2).
uint32_t FramedSender::piece(uint64_t begin, uint32_t n) {
  const uint32_t take = std::min(n, open_.size - open_done_);
  if (open_.mode != FramedSendMode::Align || take == open_.size || take < wire::kTufHeaderSize) {
    return take;
  }
  std::array<uint8_t, wire::kTufHeaderSize> first;
  writer_.write(open_, begin, open_done_, wire::kTufHeaderSize, first.data());
  const wire::TufHeader header = wire::load_tuf_header(first.data());
  if (header.length != take - wire::kTufHeaderSize || header.key != *layout_.key) return take;
  ++counters_.lookalikes_avoided;
  return take - 1;
}

void FramedSender::count_batch(const Batch& b, uint64_t offset, uint32_t n) {
  if (b.mode == FramedSendMode::Align) {
    ++counters_.frames_out;
    if (b.count > 1) counters_.packed_pdus_out += b.count;
    if (b.size > n) ++counters_.frames_cut;
  }
  if (b.mode == FramedSendMode::Align || b.mode == FramedSendMode::Markers)
    counters_.pdus_out += b.count;
  if (b.mode == FramedSendMode::Markers) {
    counters_.markers_out += layout_.grid.count(offset, offset + b.size);
  }
}

llp::Pulled FramedSender::pull(uint32_t n, uint64_t offset, llp::Frame& out) {
  pulled_ = offset;
  const uint64_t written = ring_.written();
  if (!is_open() && cursor_ == written) return {};
  const FramedSendMode mode = is_open() ? open_.mode : ring_.at(cursor_).mode;
  // s.5.1: in these modes a segment never has octets of two sending operations.
  if (n < emss_.current() && (begins_segment(mode) || begins_segment(last_mode_))) return {};
  n = std::min(n, out.room_left());
  if (!is_open()) {
    open_ = packing_ ? writer_.packed(cursor_, n, offset) : writer_.batch(cursor_, 1, offset);
    count_batch(open_, offset, n);
  }
  const uint64_t begin = offset - open_done_;
  const uint32_t length = piece(begin, n);
  if (length == 0) return {};
  writer_.write(open_, begin, open_done_, length, out.append(length));
  const bool last = open_done_ + length == open_.size;
  const llp::RecordTag tag = tag_of(open_, open_done_, last);
  last_mode_ = mode;
  emss_.record_sent(length);
  pulled_ = offset + length;
  open_done_ = last ? 0 : open_done_ + length;
  if (last) cursor_ = open_.past;
  return {.length = length,
          .push = last && cursor_ == written,
          .atomic = begins_segment(mode),
          .tag = tag};
}

void FramedSender::rebuild(const llp::RecordTag& tag, uint64_t offset, uint32_t length,
                           llp::Frame& out) {
  const uint32_t done = done_before(tag);
  const uint64_t begin = offset - done;
  const Batch b = writer_.batch(tag.a, count_of(tag), begin);
  RNIC_CHECK(tag.a >= ring_.freed() && done + length <= b.size);
  writer_.write(b, begin, done, length, out.append(length));
  ++counters_.frames_rebuilt;
}

uint32_t FramedSender::cut(base::ByteView octets) {
  const auto size = static_cast<uint32_t>(octets.size());
  if (!layout_.key || !wire::is_tuf_frame(octets, *layout_.key)) return size;
  ++counters_.lookalikes_avoided;
  return size - 1;
}

void FramedSender::released(const llp::RecordTag& tag, uint64_t end_offset) {
  released_ = end_offset;
  if (!is_last(tag)) return;
  ring_.free_to(writer_.batch(tag.a, count_of(tag), 0).past);
}

void FramedSender::validate() const {
  ring_.validate();
  emss_.validate();
  layout_.grid.validate();
  RNIC_CHECK(released_ <= pulled_);
  RNIC_CHECK(ring_.freed() <= cursor_ && cursor_ <= ring_.written());
  if (is_open()) RNIC_CHECK(open_done_ < open_.size && cursor_ == open_.at);
}

uint32_t FramedSender::pending() const {
  const uint64_t written = ring_.written();
  if (written == cursor_) return is_open() ? open_.size - open_done_ : 0;
  // A PDU as large as the EMSS that the transport has offered for a probe is sent whatever waits
  // behind it.
  if (!is_open() && emss_.is_offered()) {
    const Submission next = ring_.at(cursor_);
    if (next.mode == FramedSendMode::Align &&
        next.length + wire::kTufHeaderSize > emss_.current()) {
      return UINT32_MAX;
    }
  }
  return static_cast<uint32_t>(std::min<uint64_t>(written - cursor_, UINT32_MAX));
}

}  // namespace rnic::tuf

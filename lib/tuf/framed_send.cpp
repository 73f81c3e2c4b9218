// FramedStream: sending.
#include <algorithm>
#include <array>
#include <cstring>

#include "base/check.hpp"
#include "tuf/framed_stream.hpp"

namespace rnic::tuf {

using base::fail;

namespace {

constexpr uint32_t kSubmissionMax = 65535;

bool begins_segment(FramedSendMode mode) {
  return mode == FramedSendMode::Align || mode == FramedSendMode::Atomic;
}

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

FramedStream::FramedStream(const StreamConfig& config, Counters& counters,
                           FramedStreamEvents* events, StreamRings rings)
    : config_(config),
      counters_(counters),
      events_(events),
      own_rings_(rings.send == nullptr ? std::make_unique<uint8_t[]>(2 * size_t{config.ring_octets})
                                       : nullptr),
      send_(own_rings_ ? own_rings_.get() : rings.send),
      receive_(own_rings_ ? own_rings_.get() + config.ring_octets : rings.receive),
      watch_(config.middlebox_limit, counters) {
  RNIC_CHECK(config.ring_octets >= kRingMin && config.format.head() <= kPduHeadMax);
  layout_.format = config.format;
  layout_.max_pdu = config.max_pdu;
}

// --- modes ---

bool FramedStream::supports(FramedSendMode mode) const {
  return !begins_segment(mode) || stream_ == nullptr || stream_->traits().atomic_records;
}

Status FramedStream::set_send_mode(FramedSendMode mode, wire::TufKey key) {
  if (!supports(mode)) {
    return fail(ErrorCode::Unsupported,
                std::string("send mode ") + to_string(mode) +
                    ": the transport does not keep records whole; use markers");
  }
  if (mode == FramedSendMode::Markers && !config_.format.tells_length()) {
    return fail(ErrorCode::InvalidArgument,
                "marker mode needs PDUs that tell their length (PduFormat::length_first())");
  }
  const bool queued = cursor_ != written_.load(std::memory_order_acquire) || open_done_ != 0;
  const bool old_markers =
      mode == FramedSendMode::Markers && send_grid_.on() && released_ != pulled_;
  if (mode != send_mode_ && ((mode == FramedSendMode::Markers && queued) || old_markers)) {
    return fail(ErrorCode::WrongState,
                "marker mode begins at a known octet: wait until what was submitted is sent");
  }
  if (mode == FramedSendMode::Align) {
    // s.5: the same key for the life of the direction.
    if (has_send_key_ && key != send_key_) {
      return fail(ErrorCode::InvalidArgument, "the direction has its key already");
    }
    send_key_ = key & wire::kTufKeyMask;
    has_send_key_ = true;
  }
  if (mode == FramedSendMode::Markers && send_mode_ != FramedSendMode::Markers) {
    send_grid_ = MarkerGrid(pulled_, config_.send_interval);
    submitted_ = pulled_;
  }
  send_mode_ = mode;
  tell_emss();
  return {};
}

Status FramedStream::set_send_interval(uint16_t octets) {
  if (octets < kIntervalMin) {
    return fail(ErrorCode::InvalidArgument, "a marker interval is 16 to 65535 octets");
  }
  if (send_mode_ == FramedSendMode::Markers &&
      !send_grid_.change_interval(submitted_, octets, released_)) {
    return fail(ErrorCode::WrongState,
                "the interval was changed just now: wait for the peer's ACK");
  }
  config_.send_interval = octets;
  tell_emss();
  return {};
}

// --- limits (s.3) ---

uint32_t FramedStream::aligned_max(uint32_t emss) const {
  return emss < wire::kTufHeaderSize ? 0 : std::min(emss - wire::kTufHeaderSize, wire::kTufPduMax);
}

uint32_t FramedStream::usable_emss() const {
  const uint32_t emss = visible_.load(std::memory_order_acquire);
  if (send_mode_ == FramedSendMode::Align) return aligned_max(emss);
  if (send_mode_ != FramedSendMode::Markers) return emss;
  // The first octet of a segment may be a marker.
  const uint32_t interval = send_grid_.interval();
  const uint32_t markers = (emss + interval - 1) / interval * wire::kTufMarkerSize;
  return emss > markers ? emss - markers : 0;
}

uint32_t FramedStream::pdu_limit() const {
  const uint32_t emss = visible_.load(std::memory_order_acquire);
  switch (send_mode_) {
    case FramedSendMode::Plain: return kSubmissionMax;
    case FramedSendMode::Atomic: return std::min(emss, kSubmissionMax);
    case FramedSendMode::Align: {
      const uint32_t most = aligned_max(emss);
      const bool small = config_.emergency && emss < wire::kTufEmergencyPdu;
      return small ? std::max(most, wire::kTufEmergencyPdu) : most;
    }
    case FramedSendMode::Markers:
      return std::min(config_.max_pdu, marked_pdu_max(send_grid_, submitted_));
  }
  return 0;
}

// --- application side ---

SendResult FramedStream::refuse_size() {
  std::atomic_ref(counters_.message_size_errors).fetch_add(1, std::memory_order_relaxed);
  return SendResult::MessageSize;
}

SendResult FramedStream::send(base::ByteView pdu) {
  if (closed_ || how_ended()) return SendResult::Closed;
  if (config_.emsgsize_on_growth && growth_untold_.exchange(false)) return refuse_size();
  if (pdu.empty() || pdu.size() > pdu_limit()) return refuse_size();
  const bool framed = send_mode_ == FramedSendMode::Align || send_mode_ == FramedSendMode::Markers;
  if (framed && config_.format.tells_length() &&
      (pdu.size() < config_.format.head() || config_.format.length_of(pdu.data()) != pdu.size())) {
    return SendResult::Malformed;
  }
  const uint64_t at = written_.load(std::memory_order_relaxed);
  if (!has_room(pdu.size())) return SendResult::Full;
  std::array<uint8_t, kSubmissionHeader> header{};
  base::store_be16(header.data(), static_cast<uint16_t>(pdu.size()));
  header[2] = static_cast<uint8_t>(send_mode_);
  copy_in(at, header);
  copy_in(at + kSubmissionHeader, pdu);
  if (send_mode_ == FramedSendMode::Markers) submitted_ = send_grid_.end_of(submitted_, pdu.size());
  written_.store(at + kSubmissionHeader + pdu.size(), std::memory_order_release);
  return SendResult::Ok;
}

void FramedStream::copy_in(uint64_t at, base::ByteView octets) {
  const size_t from = at % config_.ring_octets;
  const size_t first = std::min<size_t>(octets.size(), config_.ring_octets - from);
  std::memcpy(send_ + from, octets.data(), first);
  if (first != octets.size()) {
    std::memcpy(send_, octets.data() + first, octets.size() - first);
  }
}

void FramedStream::copy_out(uint64_t at, uint8_t* dst, uint32_t n) const {
  const size_t from = at % config_.ring_octets;
  const size_t first = std::min<size_t>(n, config_.ring_octets - from);
  std::memcpy(dst, send_ + from, first);
  if (first != n) std::memcpy(dst + first, send_, n - first);
}

// --- building ---

FramedStream::Submission FramedStream::submission(uint64_t at) const {
  std::array<uint8_t, kSubmissionHeader> header;
  copy_out(at, header.data(), kSubmissionHeader);
  return {base::load_be16(header.data()), static_cast<FramedSendMode>(header[2])};
}

/// `count` submissions from `at` on, begun at stream offset `offset`.
FramedStream::Batch FramedStream::batch(uint64_t at, uint32_t count, uint64_t offset) const {
  Batch b{.at = at, .past = at, .count = count, .mode = submission(at).mode};
  for (uint32_t i = 0; i < count; ++i) {
    const uint32_t length = submission(b.past).length;
    b.body += length;
    b.past += kSubmissionHeader + length;
  }
  b.size = b.body;
  if (b.mode == FramedSendMode::Align) b.size += wire::kTufHeaderSize;
  if (b.mode == FramedSendMode::Markers) {
    b.size = static_cast<uint32_t>(send_grid_.end_of(offset, b.body) - offset);
  }
  return b;
}

/// What is sent next. Packing: whole PDUs that are there already, as many as fit the segment.
FramedStream::Batch FramedStream::next_batch(uint32_t n, uint64_t offset) const {
  Batch b = batch(cursor_, 1, offset);
  if (b.mode != FramedSendMode::Align || !config_.packing || !config_.format.tells_length())
    return b;
  const uint64_t written = written_.load(std::memory_order_acquire);
  while (b.past != written) {
    const Submission next = submission(b.past);
    if (next.mode != FramedSendMode::Align || b.body + next.length > aligned_max(n)) break;
    b.past += kSubmissionHeader + next.length;
    b.body += next.length;
    b.size += next.length;
    ++b.count;
  }
  return b;
}

void FramedStream::write_body(const Batch& b, uint32_t from, uint32_t n, uint8_t* dst) const {
  uint64_t at = b.at;
  while (n != 0) {
    const uint32_t length = submission(at).length;
    if (from < length) {
      const uint32_t run = std::min(n, length - from);
      copy_out(at + kSubmissionHeader + from, dst, run);
      dst += run;
      n -= run;
      from = 0;
    } else {
      from -= length;
    }
    at += kSubmissionHeader + length;
  }
}

/// Octets [from, from + n) of the PDU with its markers; `begin` is its stream offset.
void FramedStream::write_marked(const Batch& b, uint64_t begin, uint32_t from, uint32_t n,
                                uint8_t* dst) const {
  const uint64_t end = begin + b.size;
  uint64_t at = begin;
  uint32_t done = 0;  // octets of the PDU in front of `at`
  const auto put = [&](uint64_t begins, uint32_t length, auto&& give) {
    const uint64_t low = std::max(begins, begin + from);
    const uint64_t high = std::min(begins + length, begin + from + n);
    if (low < high)
      give(low - begins, static_cast<uint32_t>(high - low), dst + (low - begin - from));
  };
  while (at < end && at < begin + from + n) {
    if (send_grid_.at(at)) {
      std::array<uint8_t, wire::kTufMarkerSize> marker;
      const bool inside = done != 0;
      wire::store_tuf_marker(marker.data(), inside ? next_pdu_offset(send_grid_, at, end) : 0);
      put(at, wire::kTufMarkerSize, [&](uint64_t skip, uint32_t length, uint8_t* to) {
        std::memcpy(to, marker.data() + skip, length);
      });
      at += wire::kTufMarkerSize;
    }
    const auto run = static_cast<uint32_t>(std::min(send_grid_.next(at), end) - at);
    put(at, run, [&](uint64_t skip, uint32_t length, uint8_t* to) {
      write_body(b, done + static_cast<uint32_t>(skip), length, to);
    });
    done += run;
    at += run;
  }
}

void FramedStream::write(const Batch& b, uint64_t begin, uint32_t from, uint32_t n,
                         uint8_t* dst) const {
  if (b.mode == FramedSendMode::Markers) return write_marked(b, begin, from, n, dst);
  if (b.mode != FramedSendMode::Align) return write_body(b, from, n, dst);
  if (from < wire::kTufHeaderSize) {
    std::array<uint8_t, wire::kTufHeaderSize> header;
    wire::store_tuf_header(header.data(), {static_cast<uint16_t>(b.body), send_key_});
    const uint32_t run = std::min(n, wire::kTufHeaderSize - from);
    std::memcpy(dst, header.data() + from, run);
    dst += run;
    from += run;
    n -= run;
  }
  write_body(b, from - wire::kTufHeaderSize, n, dst);
}

/// How many octets of the open batch this record has. s.5.2: a part of a framing PDU must not look
/// like a whole one.
uint32_t FramedStream::piece(const Batch& b, uint64_t begin, uint32_t n) const {
  const uint32_t take = std::min(n, b.size - open_done_);
  if (b.mode != FramedSendMode::Align || take == b.size || take < wire::kTufHeaderSize) return take;
  std::array<uint8_t, wire::kTufHeaderSize> first;
  write(b, begin, open_done_, wire::kTufHeaderSize, first.data());
  const wire::TufHeader header = wire::load_tuf_header(first.data());
  if (header.length != take - wire::kTufHeaderSize || header.key != send_key_) return take;
  ++counters_.lookalikes_avoided;
  return take - 1;
}

void FramedStream::count_batch(const Batch& b, uint64_t offset, uint32_t n) {
  if (b.mode == FramedSendMode::Align) {
    ++counters_.frames_out;
    if (b.count > 1) counters_.packed_pdus_out += b.count;
    if (b.size > n) ++counters_.frames_cut;
  }
  if (b.mode == FramedSendMode::Align || b.mode == FramedSendMode::Markers)
    counters_.pdus_out += b.count;
  if (b.mode == FramedSendMode::Markers) {
    counters_.markers_out += send_grid_.count(offset, offset + b.size);
  }
}

// --- llp::StreamUser ---

llp::Pulled FramedStream::pull(uint32_t n, uint64_t offset, llp::Frame& out, base::Now) {
  pulled_ = offset;
  const uint64_t written = written_.load(std::memory_order_acquire);
  if (open_done_ == 0 && cursor_ == written) return {};
  const FramedSendMode mode = open_done_ != 0 ? open_.mode : submission(cursor_).mode;
  // s.5.1: a segment never has octets of two sending operations.
  if (n < emss_ && (begins_segment(mode) || begins_segment(last_mode_))) return {};
  n = std::min(n, out.room_left());
  if (open_done_ == 0) {
    open_ = next_batch(n, offset);
    count_batch(open_, offset, n);
  }
  const uint64_t begin = offset - open_done_;
  const uint32_t length = piece(open_, begin, n);
  if (length == 0) return {};
  write(open_, begin, open_done_, length, out.append(length));
  const bool last = open_done_ + length == open_.size;
  const llp::RecordTag tag{open_.at,
                           uint64_t{open_done_} << 32 | open_.count << 1 | (last ? 1u : 0u)};
  last_mode_ = mode;
  largest_since_ = std::max<uint64_t>(largest_since_, length);
  pulled_ = offset + length;
  open_done_ = last ? 0 : open_done_ + length;
  if (last) cursor_ = open_.past;
  return {.length = length,
          .push = last && cursor_ == written,
          .atomic = begins_segment(mode),
          .tag = tag};
}

bool FramedStream::rebuild(const llp::RecordTag& tag, uint64_t offset, uint32_t length,
                           llp::Frame& out) {
  const auto done = static_cast<uint32_t>(tag.b >> 32);
  const auto count = static_cast<uint32_t>(tag.b) >> 1;
  const uint64_t begin = offset - done;
  const Batch b = batch(tag.a, count, begin);
  RNIC_CHECK(tag.a >= freed_.load(std::memory_order_relaxed) && done + length <= b.size);
  write(b, begin, done, length, out.append(length));
  ++counters_.frames_rebuilt;
  return true;
}

uint32_t FramedStream::cut(base::ByteView octets) const {
  const auto size = static_cast<uint32_t>(octets.size());
  if (!has_send_key_ || !wire::is_tuf_frame(octets, send_key_)) return size;
  ++counters_.lookalikes_avoided;
  return size - 1;
}

void FramedStream::released(const llp::RecordTag& tag, uint64_t end_offset) {
  released_ = end_offset;
  if ((tag.b & 1) == 0) return;
  const auto count = static_cast<uint32_t>(tag.b) >> 1;
  freed_.store(batch(tag.a, count, 0).past, std::memory_order_release);
}

uint32_t FramedStream::pending() const {
  const uint64_t written = written_.load(std::memory_order_acquire);
  if (written == cursor_) return open_done_ != 0 ? open_.size - open_done_ : 0;
  // A PDU as large as the transport offered to try goes whatever waits behind it.
  if (open_done_ == 0 && offered_ != 0) {
    const Submission next = submission(cursor_);
    if (next.mode == FramedSendMode::Align && next.length + wire::kTufHeaderSize > emss_) {
      return UINT32_MAX;
    }
  }
  return static_cast<uint32_t>(std::min<uint64_t>(written - cursor_, UINT32_MAX));
}

void FramedStream::established(uint32_t emss, base::Now) {
  emss_ = emss;
  tell_emss();
  established_.store(true, std::memory_order_release);
  serve();
}

/// s.5.1: a transport that wants to try a larger path MTU reports the larger EMSS for one pull and
/// takes it back. When nothing was large enough for a probe, the offer stands for the ULP until a
/// PDU of its size is sent, or EMSS changes otherwise.
void FramedStream::emss_changed(uint32_t emss) {
  const bool grew = emss > emss_;
  const bool taken_back = before_growth_ != 0 && emss == before_growth_;
  const bool stands = taken_back && largest_since_ <= emss;
  offered_ = stands ? std::max(offered_, emss_) : (grew ? offered_ : 0);
  before_growth_ = grew ? emss_ : 0;
  if (grew) largest_since_ = 0;
  emss_ = emss;
  if (offered_ <= emss_) offered_ = 0;
  tell_emss();
}

void FramedStream::tell_emss() {
  const uint32_t visible = std::max(emss_, offered_);
  const uint32_t before = visible_.load(std::memory_order_relaxed);
  visible_.store(visible, std::memory_order_release);
  if (visible > before && before != 0) growth_untold_.store(true);
  const uint32_t usable = usable_emss();
  if (usable == told_emss_) return;
  told_emss_ = usable;
  ++counters_.emss_notices;
  if (events_ != nullptr) events_->emss_changed(usable);
}

void FramedStream::close() {
  closed_ = true;
  if (stream_ != nullptr) stream_->close();
}

}  // namespace rnic::tuf

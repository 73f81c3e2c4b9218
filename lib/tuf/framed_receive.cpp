// FramedStream: receiving.
#include <algorithm>
#include <cstring>

#include "base/check.hpp"
#include "tuf/framed_stream.hpp"

namespace rnic::tuf {

using base::fail;

namespace {

/// On the application side.
void count(uint64_t& counter) { std::atomic_ref(counter).fetch_add(1, std::memory_order_relaxed); }

}  // namespace

// --- modes ---

bool FramedStream::supports(FramedReceiveMode mode) const {
  return mode != FramedReceiveMode::Align || stream_ == nullptr || stream_->traits().shows_segments;
}

Status FramedStream::set_receive_mode(FramedReceiveMode mode, wire::TufKey key) {
  if (!supports(mode)) {
    return fail(ErrorCode::Unsupported, std::string("receive mode ") + to_string(mode) +
                                            ": the transport does not show segments; use markers");
  }
  if (mode == FramedReceiveMode::Markers && !config_.format.tells_length()) {
    return fail(ErrorCode::InvalidArgument,
                "marker mode needs PDUs that tell their length (PduFormat::length_first())");
  }
  if (part_read_ != 0) {
    return fail(ErrorCode::WrongState,
                "read() has given a part of a PDU: take the rest of it first");
  }
  const uint64_t read = read_.load(std::memory_order_acquire);
  layout_.mode = mode;
  layout_.key = key & wire::kTufKeyMask;
  layout_.grid = mode == FramedReceiveMode::Markers ? MarkerGrid(read, config_.receive_interval)
                                                    : MarkerGrid();
  frame_end_ = boundary_ = read;
  follow_boundaries(ordered_.load(std::memory_order_relaxed));
  return {};
}

Status FramedStream::set_receive_interval(uint16_t octets) {
  if (octets < kIntervalMin) {
    return fail(ErrorCode::InvalidArgument, "a marker interval is 16 to 65535 octets");
  }
  const uint64_t read = read_.load(std::memory_order_acquire);
  if (layout_.mode == FramedReceiveMode::Markers &&
      !layout_.grid.change_interval(read, octets, read)) {
    return fail(ErrorCode::WrongState,
                "the interval was changed just now: receive up to its marker");
  }
  config_.receive_interval = octets;
  return {};
}

// --- application side ---

bool FramedStream::fetch(uint64_t offset, uint8_t* dst, uint32_t n) const {
  if (offset + n > ordered_.load(std::memory_order_acquire)) return false;
  const size_t from = offset % config_.ring_octets;
  const size_t first = std::min<size_t>(n, config_.ring_octets - from);
  std::memcpy(dst, receive_ + from, first);
  if (first != n) std::memcpy(dst + first, receive_, n - first);
  return true;
}

/// The unit at the front, when all of it is there.
bool FramedStream::next_unit(Unit& unit) {
  const auto get = [this](uint64_t offset, uint8_t* dst, uint32_t n) {
    return fetch(offset, dst, n);
  };
  const uint64_t at = read_.load(std::memory_order_relaxed);
  Error error = Error::None;
  const Parsed parsed = parse_unit(layout_, at, frame_end_, get, unit, error);
  if (parsed == Parsed::Bad) break_off(error);
  if (parsed != Parsed::Known || unit.end > ordered_.load(std::memory_order_acquire)) return false;
  if (layout_.mode == FramedReceiveMode::Markers && !markers_right(layout_.grid, unit, get)) {
    break_off(Error::BadMarker);
    return false;
  }
  return true;
}

void FramedStream::take(const Unit& unit) {
  count(counters_.pdus_in);
  frame_end_ = unit.frame_end;
  part_read_ = 0;
  read_.store(unit.end, std::memory_order_release);
}

void FramedStream::break_off(Error error) {
  error_ = error;
  switch (error) {
    case Error::BadKey: count(counters_.bad_key_errors); break;
    case Error::BadLength: count(counters_.bad_length_errors); break;
    case Error::BadMarker: count(counters_.bad_marker_errors); break;
    case Error::PduTooLong: count(counters_.pdu_too_long_errors); break;
    case Error::None: break;
  }
}

Received FramedStream::receive(base::ByteSpan out) {
  if (layout_.mode == FramedReceiveMode::Plain) {
    const uint32_t n = read(out);
    return n != 0 ? Received{ReceiveKind::Pdu, n} : Received{};
  }
  Unit unit;
  if (error_ != Error::None) return {ReceiveKind::Broken, 0};
  if (!next_unit(unit)) return {error_ != Error::None ? ReceiveKind::Broken : ReceiveKind::Nothing};
  const uint32_t length = unit.length - part_read_;  // what read() has given is gone
  if (length > out.size()) return {ReceiveKind::NoRoom, length};
  fetch_content(
      layout_.grid, layout_.grid.end_of(unit.pdu, part_read_), out.data(), length,
      [this](uint64_t offset, uint8_t* dst, uint32_t n) { return fetch(offset, dst, n); });
  take(unit);
  return {ReceiveKind::Pdu, length};
}

uint32_t FramedStream::read(base::ByteSpan out) {
  const auto get = [this](uint64_t offset, uint8_t* dst, uint32_t n) {
    return fetch(offset, dst, n);
  };
  const uint64_t at = read_.load(std::memory_order_relaxed);
  if (layout_.mode == FramedReceiveMode::Plain) {
    const auto n = static_cast<uint32_t>(
        std::min<uint64_t>(out.size(), ordered_.load(std::memory_order_acquire) - at));
    if (n != 0) fetch(at, out.data(), n);
    read_.store(at + n, std::memory_order_release);
    return n;
  }
  uint32_t done = 0;
  Unit unit;
  while (done < out.size() && error_ == Error::None && next_unit(unit)) {
    const auto run =
        static_cast<uint32_t>(std::min<size_t>(out.size() - done, unit.length - part_read_));
    fetch_content(layout_.grid, layout_.grid.end_of(unit.pdu, part_read_), out.data() + done, run,
                  get);
    done += run;
    part_read_ += run;
    if (part_read_ == unit.length) take(unit);
  }
  return done;
}

std::optional<StreamEnd> FramedStream::how_ended() const {
  const uint8_t end = ended_.load(std::memory_order_acquire);
  if (end == 0xff) return std::nullopt;
  return static_cast<StreamEnd>(end);
}

bool FramedStream::room_is_news() const {
  const uint64_t read = read_.load(std::memory_order_relaxed);
  const uint64_t told = told_.load(std::memory_order_relaxed);
  if (read == told) return false;
  return read - told >= config_.ring_octets / 8 || read == ordered_.load(std::memory_order_relaxed);
}

// --- owner's side ---

void FramedStream::serve() {
  if (stream_ == nullptr) return;
  if (written_.load(std::memory_order_acquire) != cursor_ || open_done_ != 0) stream_->ready();
  const uint64_t read = read_.load(std::memory_order_acquire);
  if (read != told_.load(std::memory_order_relaxed)) {
    told_.store(read, std::memory_order_relaxed);
    stream_->room_grew();
  }
}

llp::InspectVerdict FramedStream::inspect(base::Range range, base::ByteView, base::Now) {
  if (range.end - read_.load(std::memory_order_acquire) <= config_.ring_octets) {
    return llp::InspectVerdict::Accept;
  }
  clipped_ = {};
  return llp::InspectVerdict::NoRoom;
}

void FramedStream::place(base::Range range, base::ByteView octets, bool in_order, base::Now) {
  const size_t from = range.begin % config_.ring_octets;
  const size_t first = std::min<size_t>(octets.size(), config_.ring_octets - from);
  std::memcpy(receive_ + from, octets.data(), first);
  if (first != octets.size()) {
    std::memcpy(receive_, octets.data() + first, octets.size() - first);
  }
  if (layout_.mode != FramedReceiveMode::Align) return;
  const bool part = clipped_.begin <= range.begin && range.end <= clipped_.end;
  const bool known = in_order && boundary_ >= range.begin;
  if (watch_.segment(range, octets, !part, known ? boundary_ : UINT64_MAX, layout_.key) &&
      events_ != nullptr) {
    events_->middlebox_suspected();
  }
}

/// Walks the headers of framing PDUs: where the next one begins.
void FramedStream::follow_boundaries(uint64_t offset) {
  while (layout_.mode == FramedReceiveMode::Align && boundary_ != UINT64_MAX &&
         boundary_ + wire::kTufHeaderSize <= offset) {
    std::array<uint8_t, wire::kTufHeaderSize> octets;
    // Past a reader that is behind by a ring nothing is known.
    if (!fetch(boundary_, octets.data(), wire::kTufHeaderSize)) return;
    const wire::TufHeader header = wire::load_tuf_header(octets.data());
    boundary_ = header.key == layout_.key && header.length != 0
                    ? boundary_ + wire::kTufHeaderSize + header.length
                    : UINT64_MAX;
  }
}

void FramedStream::ordered(uint64_t offset, base::Now) {
  ordered_.store(offset, std::memory_order_release);
  follow_boundaries(offset);
}

uint32_t FramedStream::receive_room() const {
  return config_.ring_octets - static_cast<uint32_t>(ordered_.load(std::memory_order_relaxed) -
                                                     read_.load(std::memory_order_acquire));
}

void FramedStream::peer_finished(base::Now) {
  peer_finished_.store(true, std::memory_order_release);
}

void FramedStream::ended(StreamEnd how, base::Now) {
  stream_ = nullptr;
  ended_.store(static_cast<uint8_t>(how), std::memory_order_release);
}

}  // namespace rnic::tuf

#include "tuf/framed_receiver.hpp"

#include <algorithm>
#include <array>

#include "base/check.hpp"
#include "base/fail.hpp"

namespace rnic::tuf {

using base::fail;

FramedReceiver::FramedReceiver(const StreamConfig& config, uint8_t* ring, Counters& counters)
    : counters_(counters),
      ring_(ring, config.ring_octets),
      interval_(config.framing.receive_interval),
      watch_(config.framing.middlebox_limit, counters) {
  layout_.format = config.framing.format;
  layout_.max_pdu = config.framing.max_frame;
}

// --- layout ---

Status FramedReceiver::set_mode(FramedReceiveMode mode, wire::TufKey key) {
  if (mode == FramedReceiveMode::Markers && !layout_.format.tells_length()) {
    return fail(ErrorCode::InvalidArgument,
                "marker mode needs PDUs that tell their length: choose such a FrameFormat");
  }
  if (part_read_ != 0) {
    return fail(ErrorCode::WrongState,
                "read() has given a part of a PDU: read the rest of it first");
  }
  const uint64_t read = read_.load(std::memory_order_acquire);
  layout_.mode = mode;
  layout_.key = key & wire::kTufKeyMask;
  layout_.grid = mode == FramedReceiveMode::Markers ? MarkerGrid(read, interval_) : MarkerGrid();
  frame_end_ = boundary_ = read;
  follow_boundaries(ordered_.load(std::memory_order_relaxed));
  return {};
}

Status FramedReceiver::set_interval(uint16_t octets) {
  if (octets < kIntervalMin) {
    return fail(ErrorCode::InvalidArgument, "a marker interval is 16 to 65535 octets");
  }
  const uint64_t read = read_.load(std::memory_order_acquire);
  if (layout_.mode == FramedReceiveMode::Markers &&
      !layout_.grid.change_interval(read, octets, read)) {
    return fail(ErrorCode::WrongState,
                "the interval was changed just now: receive up to its marker");
  }
  interval_ = octets;
  return {};
}

// --- application side ---

bool FramedReceiver::fetch(uint64_t offset, uint8_t* dst, uint32_t n) const {
  if (offset + n > ordered_.load(std::memory_order_acquire)) return false;
  ring_.read(offset, {dst, n});
  return true;
}

/// Finds the unit at the front. False: not all of it is there, or it is wrong.
bool FramedReceiver::next_unit(Unit& unit) {
  const auto get = fetcher();
  const uint64_t at = read_.load(std::memory_order_relaxed);
  framing::PduError error = framing::PduError::None;
  const Parsed parsed = parse_unit(layout_, at, frame_end_, get, unit, error);
  if (parsed == Parsed::Bad) break_off(error);
  if (parsed != Parsed::Known || unit.end > ordered_.load(std::memory_order_acquire)) return false;
  if (layout_.mode == FramedReceiveMode::Markers && !markers_right(layout_.grid, unit, get)) {
    break_off(framing::PduError::BadMarker);
    return false;
  }
  return true;
}

void FramedReceiver::take(const Unit& unit) {
  count_shared(counters_.pdus_in);
  frame_end_ = unit.frame_end;
  part_read_ = 0;
  read_.store(unit.end, std::memory_order_release);
}

void FramedReceiver::break_off(framing::PduError error) {
  error_ = error;
  switch (error) {
    case framing::PduError::BadKey: count_shared(counters_.bad_key_errors); break;
    case framing::PduError::BadLength: count_shared(counters_.bad_length_errors); break;
    case framing::PduError::BadMarker: count_shared(counters_.bad_marker_errors); break;
    case framing::PduError::PduTooLong: count_shared(counters_.pdu_too_long_errors); break;
    case framing::PduError::Crc:
    case framing::PduError::None: break;
  }
}

Received FramedReceiver::receive(base::ByteSpan out) {
  if (layout_.mode == FramedReceiveMode::Plain) {
    const uint32_t n = read(out);
    return n != 0 ? Received{ReceiveKind::Pdu, n} : Received{};
  }
  Unit unit;
  if (error_ != framing::PduError::None) return {ReceiveKind::Broken, 0};
  if (!next_unit(unit))
    return {error_ != framing::PduError::None ? ReceiveKind::Broken : ReceiveKind::Nothing};
  const uint32_t length = unit.length - part_read_;  // read() has given the rest
  if (length > out.size()) return {ReceiveKind::NoRoom, length};
  fetch_content(layout_.grid, layout_.grid.end_of(unit.pdu, part_read_), out.data(), length,
                fetcher());
  take(unit);
  return {ReceiveKind::Pdu, length};
}

uint32_t FramedReceiver::read(base::ByteSpan out) {
  const auto get = fetcher();
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
  while (done < out.size() && error_ == framing::PduError::None && next_unit(unit)) {
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

bool FramedReceiver::room_is_news() const {
  const uint64_t read = read_.load(std::memory_order_relaxed);
  const uint64_t told = told_.load(std::memory_order_relaxed);
  if (read == told) return false;
  return read - told >= ring_.size() / 8 || read == ordered_.load(std::memory_order_relaxed);
}

// --- owner's side ---

bool FramedReceiver::take_room_news() {
  const uint64_t read = read_.load(std::memory_order_acquire);
  if (read == told_.load(std::memory_order_relaxed)) return false;
  told_.store(read, std::memory_order_relaxed);
  return true;
}

llp::InspectVerdict FramedReceiver::inspect(base::Range range) {
  if (range.end - read_.load(std::memory_order_acquire) <= ring_.size()) {
    return llp::InspectVerdict::Accept;
  }
  clipped_ = {};
  return llp::InspectVerdict::NoRoom;
}

bool FramedReceiver::place(base::Range range, base::ByteView octets, bool in_order) {
  ring_.write(range.begin, octets);
  if (layout_.mode != FramedReceiveMode::Align) return false;
  const bool part = clipped_.begin <= range.begin && range.end <= clipped_.end;
  const bool known = in_order && boundary_ >= range.begin;
  return watch_.segment(range, octets, !part, known ? boundary_ : UINT64_MAX, layout_.key);
}

void FramedReceiver::ordered(uint64_t offset) {
  ordered_.store(offset, std::memory_order_release);
  follow_boundaries(offset);
}

void FramedReceiver::validate() const {
  const uint64_t ordered = ordered_.load(std::memory_order_relaxed);
  const uint64_t read = read_.load(std::memory_order_acquire);
  RNIC_CHECK(told_.load(std::memory_order_relaxed) <= read && read <= ordered);
  RNIC_CHECK(ordered - read <= ring_.size());
  layout_.grid.validate();
}

/// Walks the headers of framing PDUs below `offset` to find where the next one begins.
void FramedReceiver::follow_boundaries(uint64_t offset) {
  while (layout_.mode == FramedReceiveMode::Align && boundary_ != UINT64_MAX &&
         boundary_ + wire::kTufHeaderSize <= offset) {
    std::array<uint8_t, wire::kTufHeaderSize> octets;
    // If the octets are not there, the boundary stays where it is.
    if (!fetch(boundary_, octets.data(), wire::kTufHeaderSize)) return;
    const wire::TufHeader header = wire::load_tuf_header(octets.data());
    boundary_ = header.key == layout_.key && header.length != 0
                    ? boundary_ + wire::kTufHeaderSize + header.length
                    : UINT64_MAX;
  }
}

}  // namespace rnic::tuf

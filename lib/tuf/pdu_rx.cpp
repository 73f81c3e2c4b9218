#include "tuf/pdu_rx.hpp"

#include <array>

#include "base/check.hpp"
#include "base/endian.hpp"

namespace rnic::tuf {

using framing::kNone;
using framing::kNotLocatable;
using framing::kUnlocated;

void PduReceiver::attach(llp::Stream* stream) {
  stream_ = stream;
  can_drop_ = stream != nullptr && stream->traits().can_drop;
}

void PduReceiver::start(uint64_t offset, const ReceiveLayout& layout, uint32_t skip) {
  layout_ = layout;
  skip_ = skip;
  arrived_ = std::max(arrived_, offset);
  ordered_ = place_next_ = deliver_next_ = frame_end_ = offset;
}

void PduReceiver::discard() {
  stopped_ = true;
  placed_.clear();
  held_.clear();
  if (held_told_ != 0 && stream_ != nullptr) stream_->room_grew();
  held_told_ = 0;
}

uint32_t PduReceiver::take_back(uint64_t offset, uint8_t* dst, uint32_t n) {
  const uint32_t node = held_.containing(offset);
  if (node == kNone) return 0;
  const uint64_t end = std::min<uint64_t>(held_.node(node).range.end, offset + n);
  held_.copy({offset, end}, dst);
  held_.erase(node, {offset, end}, kUnlocated);
  return static_cast<uint32_t>(end - offset);
}

bool PduReceiver::fetch_held(uint64_t offset, uint8_t* dst, uint32_t n) const {
  const uint32_t node = held_.containing(offset);
  if (node == kNone || held_.node(node).range.end < offset + n) return false;
  held_.copy({offset, offset + n}, dst);
  return true;
}

/// Of a segment at the delivery point, and what is held before it.
bool PduReceiver::fetch_in_order(base::Range range, base::ByteView octets, uint64_t offset,
                                 uint8_t* dst, uint32_t n) const {
  if (offset + n > range.end) return false;
  if (offset < range.begin) {
    const auto before = static_cast<uint32_t>(std::min<uint64_t>(n, range.begin - offset));
    if (!fetch_held(offset, dst, before)) return false;
    offset += before;
    dst += before;
    n -= before;
  }
  if (n != 0) std::copy_n(octets.data() + (offset - range.begin), n, dst);
  return true;
}

// --- step 1: inspect ---

/// The segment needs no hold space: in order, and one framing PDU behind the last one.
bool PduReceiver::fits_at_once(base::Range range, base::ByteView octets) const {
  return in_order(range) && layout_.mode == FramedReceiveMode::Align &&
         place_next_ == range.begin && frame_end_ == range.begin &&
         wire::is_tuf_frame(octets, layout_.key);
}

llp::InspectVerdict PduReceiver::inspect(base::Range range, base::ByteView octets) {
  const framing::SegmentParts::Room room = parts_.with(range, in_order(range));
  if (stopped_ || !can_drop_ || fits_at_once(range, octets) ||
      held_.has_room(room.range, in_order(range), room.parts)) {
    return llp::InspectVerdict::Accept;
  }
  ++counters_.hold_refused;
  clipped_ = {};
  return llp::InspectVerdict::NoRoom;
}

/// The rest of a started PDU, whole PDUs, and what there is room for of the one behind. The reserve
/// is not for that one while the others can go on without it: so it comes back, and another session
/// has its turn.
uint32_t PduReceiver::takes(base::Range range, base::ByteView octets) const {
  const auto all = static_cast<uint32_t>(octets.size());
  if (stopped_ || error_at_next_ != Error::None) return all;
  const auto fetch = [&](uint64_t offset, uint8_t* dst, uint32_t n) {
    return fetch_in_order(range, octets, offset, dst, n);
  };
  uint64_t front_end = place_next_ < range.begin ? range.end : range.begin;
  uint64_t next = place_next_;
  uint64_t frame_end = frame_end_;
  Parsed parsed = Parsed::Known;
  while (next < range.end) {
    Unit unit;
    Error error = Error::None;
    parsed = parse_unit(layout_, next, frame_end, fetch, unit, error);
    if (parsed != Parsed::Known || unit.end > range.end) break;
    if (next < range.begin) front_end = unit.end;
    next = unit.end;
    frame_end = unit.frame_end;
  }
  const base::Range front{range.begin, front_end};
  const uint32_t front_room = held_.room_in(front, true);
  if (front_room < front.size() || next < range.begin) return front_room;
  if (parsed == Parsed::Bad) return all;  // nothing behind it is kept
  const auto whole = static_cast<uint32_t>(next - range.begin);
  return whole + held_.room_in({next, range.end}, whole == 0);
}

// --- step 3: place ---

void PduReceiver::place(base::Range range, base::ByteView octets, base::Now now) {
  const bool ordered_segment = in_order(range);
  if (stopped_ || (error_at_next_ != Error::None && ordered_segment)) {
    counters_.discarded_octets += range.size();
  } else {
    if (layout_.mode == FramedReceiveMode::Align) note_alignment(range, octets, now);
    const bool part = clipped_.begin <= range.begin && range.end <= clipped_.end;
    if (ordered_segment) {
      place_in_order(range, octets, now);
    } else if (layout_.mode == FramedReceiveMode::Align) {
      // s.5.4, conditions 1 and 2.
      if (config_.out_of_order && !part && octets.size() > wire::kTufHeaderSize &&
          wire::is_tuf_frame(octets, layout_.key)) {
        place_frame_early(range, octets, now);
      } else {
        hold(range, octets, false, kUnlocated, now);
      }
    } else {
      scan(hold(range, octets, false, kUnlocated, now), now);
    }
  }
  if (ordered_segment) arrived_ = range.end;
}

/// The first framing PDU known to begin in or behind a range at the delivery point.
uint64_t PduReceiver::next_boundary(base::Range range) const {
  if (frame_end_ >= range.begin) return frame_end_;
  std::array<uint8_t, wire::kTufHeaderSize> header;
  if (!fetch_held(place_next_, header.data(), wire::kTufHeaderSize)) return UINT64_MAX;
  return place_next_ + wire::kTufHeaderSize + wire::load_tuf_header(header.data()).length;
}

void PduReceiver::note_alignment(base::Range range, base::ByteView octets, base::Now now) {
  const bool part = clipped_.begin <= range.begin && range.end <= clipped_.end;
  const uint64_t boundary = in_order(range) ? next_boundary(range) : UINT64_MAX;
  if (watch_.segment(range, octets, !part, boundary, layout_.key)) sink_.middlebox_suspected(now);
}

void PduReceiver::place_in_order(base::Range range, base::ByteView octets, base::Now now) {
  const auto fetch = [&](uint64_t offset, uint8_t* dst, uint32_t n) {
    return fetch_in_order(range, octets, offset, dst, n);
  };
  const uint64_t first = place_next_;
  while (place_next_ < range.end && !stopped_) {
    Unit unit;
    const Parsed parsed = parse_unit(layout_, place_next_, frame_end_, fetch, unit, error_at_next_);
    if (parsed == Parsed::NeedMore) error_at_next_ = Error::None;
    if (parsed == Parsed::Known && placed_.first_begin_from(place_next_) < unit.end) {
      error_at_next_ = Error::BadLength;  // it would reach over a PDU that was found
    } else if (parsed == Parsed::Known && unit.end <= range.end &&
               !markers_right(layout_.grid, unit, fetch)) {
      error_at_next_ = Error::BadMarker;
    }
    if (error_at_next_ != Error::None) {
      counters_.discarded_octets += range.end - std::max(place_next_, range.begin);
      return;
    }
    if (parsed == Parsed::NeedMore || unit.end > range.end) break;
    if (!place_from_segment(unit, range, octets, now)) break;
    place_next_ = unit.end;
    frame_end_ = unit.frame_end;
  }
  if (stopped_) return;
  const uint64_t rest = std::max(place_next_, range.begin);
  if (place_next_ != first) trace(TraceKind::InOrder, {first, place_next_}, now);
  if (rest < range.end) {
    hold({rest, range.end}, octets.subspan(rest - range.begin), true, kUnlocated, now);
  }
}

/// A unit that ends in the segment; its front may be held.
bool PduReceiver::place_from_segment(const Unit& unit, base::Range range, base::ByteView octets,
                                     base::Now now) {
  if (unit.begin >= range.begin) {
    if (!place_unit(unit, octets.data() + (unit.begin - range.begin), true, now)) return false;
    counters_.placed_in_order_octets += unit.end - unit.begin;
    return true;
  }
  const base::Range rest{range.begin, unit.end};
  const uint32_t node = hold(rest, octets.first(rest.size()), true, kUnlocated, now);
  if (node == kNone) return false;
  const bool placed = place_unit(unit, held_.contiguous({unit.begin, unit.end}), true, now);
  if (placed && !stopped_) held_.erase(node, {unit.begin, unit.end}, kUnlocated);
  return placed;
}

void PduReceiver::place_frame_early(base::Range range, base::ByteView octets, base::Now now) {
  const auto fetch = [&](uint64_t offset, uint8_t* dst, uint32_t n) {
    if (offset + n > range.end) return false;
    std::copy_n(octets.data() + (offset - range.begin), n, dst);
    return true;
  };
  uint64_t at = range.begin;
  uint64_t frame_end = at;
  while (at < range.end && !stopped_) {
    Unit unit;
    Error error = Error::None;
    // What is wrong here is judged when the order reaches it.
    if (parse_aligned(layout_, at, frame_end, fetch, unit, error) != Parsed::Known) break;
    if (!place_unit(unit, octets.data() + (unit.begin - range.begin), false, now)) break;
    at = unit.end;
    frame_end = unit.frame_end;
  }
  if (at == range.end || stopped_) return;
  hold({at, range.end}, octets.subspan(at - range.begin), false,
       at == range.begin ? kUnlocated : range.end, now);
}

/// One PDU to the user. False: it must be held (the user says so, or a list is full).
bool PduReceiver::place_unit(const Unit& unit, const uint8_t* data, bool in_order, base::Now now) {
  if (!placed_.has_room(!in_order)) return false;
  const llp::UlpduView pdu = view(unit, data);
  const llp::PlaceVerdict verdict = sink_.place_pdu(pdu, in_order, now);
  if (stopped_) return true;
  if (!in_order && verdict != llp::PlaceVerdict::Placed) return false;
  framing::PlacedPdu& entry =
      placed_.insert({unit.begin, unit.pdu, unit.end, pdu.length}, !in_order);
  pdu.copy_prefix(entry.header.data(), llp::kUlpduHeaderMax);
  if (in_order) return true;
  counters_.placed_early_octets += unit.end - unit.begin;
  trace(TraceKind::PlacedEarly, {unit.begin, unit.end}, now);
  return true;
}

/// The PDU without its markers and what is skipped; the pieces live in the store until the next
/// view.
llp::UlpduView PduReceiver::view(const Unit& unit, const uint8_t* data) {
  base::ByteView* pieces = store_.pieces();
  size_t count = 0;
  uint64_t at = layout_.grid.end_of(unit.pdu, skip_);
  const uint32_t length = unit.length - std::min(skip_, unit.length);
  for (uint32_t left = length; left != 0;) {
    at = layout_.grid.after(at);
    const auto run = static_cast<uint32_t>(std::min<uint64_t>(layout_.grid.next(at) - at, left));
    pieces[count++] = {data + (at - unit.begin), run};
    at += run;
    left -= run;
  }
  return {{pieces, count}, length};
}

uint32_t PduReceiver::hold(base::Range range, base::ByteView octets, bool in_order, uint64_t next,
                           base::Now now) {
  const uint32_t node = held_.add(range, octets, in_order, next);
  if (node == kNone) {
    // Only over a transport that cannot drop: inspect() found room otherwise.
    ++counters_.hold_refused;
    discard();
    if (stream_ != nullptr) stream_->abort();
    return kNone;
  }
  counters_.held_octets += range.size();
  held_told_ = std::max(held_told_, held_.octets());
  trace(TraceKind::Held, range, now);
  return node;
}

/// Marker mode: places what a held range out of order has whole, from its first known PDU on.
void PduReceiver::scan(uint32_t node, base::Now now) {
  if (!config_.out_of_order) return;
  const auto fetch = [this](uint64_t offset, uint8_t* dst, uint32_t n) {
    return fetch_held(offset, dst, n);
  };
  while (node != kNone && !stopped_) {
    framing::HeldRange& held = held_.node(node);
    const base::Range range = held.range;
    if (held.next_pdu == kUnlocated) held.next_pdu = locate_held(range);
    if (held.next_pdu >= kNotLocatable || held.next_pdu >= range.end) return;
    Unit unit;
    Error error = Error::None;
    const Parsed parsed = parse_marked(layout_, held.next_pdu, fetch, unit, error);
    if (parsed == Parsed::NeedMore || (parsed == Parsed::Known && unit.end > range.end)) return;
    if (parsed == Parsed::Bad || !markers_right(layout_.grid, unit, fetch)) {
      held.next_pdu = kNotLocatable;  // judged when the order reaches it
      return;
    }
    if (!held_.can_split() || !placed_.has_room(true)) return;
    if (!place_unit(unit, held_.contiguous({unit.begin, unit.end}), false, now)) {
      held.next_pdu = unit.end;
    } else if (!stopped_) {
      node = held_.erase(node, {unit.begin, unit.end}, unit.end);
    }
  }
}

/// s.6: where the first marker of a held range leads. A marker that is cut by the range's begin or
/// end still has one of its copies whole. kNotLocatable: the copies differ.
uint64_t PduReceiver::locate_held(base::Range range) const {
  if (placed_.ends_at(range.begin)) return range.begin;
  const MarkerGrid& grid = layout_.grid;
  const uint64_t low = range.begin - std::min<uint64_t>(range.begin - grid.start(), 3);
  for (uint64_t marker = grid.next(low); marker < range.end; marker = grid.next(marker + 1)) {
    std::array<uint8_t, 2> copy;
    std::array<uint8_t, 2> second;
    const bool has_first = marker >= range.begin && fetch_held(marker, copy.data(), 2);
    const bool has_second = marker + 2 >= range.begin && fetch_held(marker + 2, second.data(), 2);
    if (has_first && has_second && copy != second) return kNotLocatable;
    if (!has_first && !has_second) continue;
    const uint16_t offset = base::load_be16(has_first ? copy.data() : second.data());
    const uint64_t target = marker + wire::kTufMarkerSize + offset;
    // A marker in front of the PDU belongs to it.
    const uint64_t begin =
        target >= grid.start() + wire::kTufMarkerSize && grid.at(target - wire::kTufMarkerSize)
            ? target - wire::kTufMarkerSize
            : target;
    if (begin >= range.begin) return begin;
  }
  return kUnlocated;
}

// --- step 4: ordered ---

void PduReceiver::ordered(uint64_t offset, base::Now now) {
  const uint64_t from = ordered_;
  arrived_ = std::max(arrived_, offset);
  ordered_ = offset;
  if (stopped_) return;
  drain(offset, now);
  if (stopped_) return;
  if (held_.octets() < held_told_ && stream_ != nullptr) stream_->room_grew();
  held_told_ = held_.octets();
  trace(TraceKind::Delivered, {from, offset}, now);
}

void PduReceiver::drain(uint64_t offset, base::Now now) {
  while (!stopped_) {
    framing::PlacedPdu* front = placed_.front();
    if (front != nullptr && front->begin < deliver_next_) return raise(Error::BadLength, now);
    if (front != nullptr && front->begin == deliver_next_ && front->end <= offset) {
      deliver(*front, now);
      continue;
    }
    if (error_at_next_ != Error::None) return raise(error_at_next_, now);
    if (place_next_ >= offset) return;
    switch (place_held_head(now)) {
      case Head::Placed: break;
      case Head::Incomplete: return;
      case Head::Bad: return raise(error_at_next_, now);
    }
  }
}

/// The PDU at the delivery point, from held octets.
PduReceiver::Head PduReceiver::place_held_head(base::Now now) {
  const uint32_t node = held_.containing(place_next_);
  if (node == kNone) return Head::Incomplete;
  const auto fetch = [this](uint64_t at, uint8_t* dst, uint32_t n) {
    return fetch_held(at, dst, n);
  };
  Unit unit;
  const Parsed parsed = parse_unit(layout_, place_next_, frame_end_, fetch, unit, error_at_next_);
  if (parsed == Parsed::Bad) return Head::Bad;
  error_at_next_ = Error::None;
  if (parsed == Parsed::NeedMore) return Head::Incomplete;
  if (placed_.first_begin_from(place_next_) < unit.end) {
    error_at_next_ = Error::BadLength;
    return Head::Bad;
  }
  if (unit.end > held_.node(node).range.end) return Head::Incomplete;
  if (!markers_right(layout_.grid, unit, fetch)) {
    error_at_next_ = Error::BadMarker;
    return Head::Bad;
  }
  if (!place_unit(unit, held_.contiguous({unit.begin, unit.end}), true, now)) {
    return Head::Incomplete;
  }
  if (stopped_) return Head::Placed;
  held_.erase(node, {unit.begin, unit.end}, kUnlocated);
  place_next_ = unit.end;
  frame_end_ = unit.frame_end;
  return Head::Placed;
}

void PduReceiver::deliver(framing::PlacedPdu& entry, base::Now now) {
  deliver_next_ = entry.end;
  if (entry.early) {
    // Behind it comes the rest of its framing PDU, held, or the next framing PDU.
    place_next_ = frame_end_ = deliver_next_;
    const uint32_t node = held_.beginning_at(place_next_);
    if (layout_.mode == FramedReceiveMode::Align && node != kNone &&
        held_.node(node).next_pdu < kNotLocatable) {
      frame_end_ = held_.node(node).next_pdu;
    }
  }
  ++counters_.pdus_in;
  const base::ByteView header(entry.header.data(),
                              std::min(entry.ulpdu_length, llp::kUlpduHeaderMax));
  sink_.deliver_pdu(header, entry.ulpdu_length, now);
  if (!stopped_) placed_.pop_front();
}

/// Nothing more goes up; TCP stays open.
void PduReceiver::raise(Error error, base::Now now) {
  switch (error) {
    case Error::BadKey: ++counters_.bad_key_errors; break;
    case Error::BadLength: ++counters_.bad_length_errors; break;
    case Error::BadMarker: ++counters_.bad_marker_errors; break;
    case Error::PduTooLong: ++counters_.pdu_too_long_errors; break;
    case Error::None: break;
  }
  discard();
  sink_.stream_broken(error, now);
}

void PduReceiver::trace(TraceKind kind, base::Range range, base::Now now) {
  if (stream_ == nullptr) return;
  if (base::TraceSink* sink = stream_->trace()) [[unlikely]] {
    sink->record(kind, range, now);
  }
}

}  // namespace rnic::tuf

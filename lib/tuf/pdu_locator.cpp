#include "tuf/pdu_locator.hpp"

#include <algorithm>
#include <array>

#include "base/endian.hpp"
#include "framing/receiver_steps.hpp"

namespace rnic::tuf {
namespace {

bool fetch_held(const framing::HeldOctets& held, uint64_t offset, uint8_t* dst, uint32_t n) {
  const uint32_t node = held.containing(offset);
  if (node == framing::kNone || held.node(node).range.end < offset + n) return false;
  held.copy({offset, offset + n}, dst);
  return true;
}

/// Reads octets of a segment at the delivery point, and of the held octets in front of it.
bool fetch_in_order(const framing::HeldOctets& held, base::Range range, base::ByteView octets,
                    uint64_t offset, uint8_t* dst, uint32_t n) {
  if (offset + n > range.end) return false;
  if (offset < range.begin) {
    const auto before = static_cast<uint32_t>(std::min<uint64_t>(n, range.begin - offset));
    if (!fetch_held(held, offset, dst, before)) return false;
    offset += before;
    dst += before;
    n -= before;
  }
  if (n != 0) std::copy_n(octets.data() + (offset - range.begin), n, dst);
  return true;
}

Unit unit_of(const framing::PduSpan& span) {
  return {.begin = span.begin, .pdu = span.header, .end = span.end};
}

}  // namespace

framing::PduSpan PduLocator::span_of(const Unit& unit) const {
  return {.begin = unit.begin,
          .header = unit.pdu,
          .end = unit.end,
          .ulpdu_length = unit.length - std::min(skip_, unit.length),
          .unit_end = unit.frame_end};
}

/// The begin of the first framing PDU known in or behind a range at the delivery point.
uint64_t PduLocator::next_boundary(const framing::Arrivals& arrivals, base::Range range) const {
  if (frame_end_ >= range.begin) return frame_end_;
  std::array<uint8_t, wire::kTufHeaderSize> header;
  const uint64_t begin = arrivals.place_next();
  if (!fetch_held(arrivals.held(), begin, header.data(), wire::kTufHeaderSize)) return UINT64_MAX;
  return begin + wire::kTufHeaderSize + wire::load_tuf_header(header.data()).length;
}

void PduLocator::arriving(const framing::Arrivals& arrivals, base::Range range,
                          base::ByteView octets, base::Now now) {
  if (!aligned()) return;
  const uint64_t boundary = arrivals.in_order(range) ? next_boundary(arrivals, range) : UINT64_MAX;
  const bool suspected =
      watch_.segment(range, octets, !arrivals.is_part(range), boundary, layout_.key);
  if (suspected && session_events_ != nullptr) session_events_->middlebox_suspected(now);
}

/// A framing PDU that fills its segment is recognized by its header, also out of order (s.5.4,
/// conditions 1 and 2). In marker mode octets out of order are held first, and then a marker
/// locates PDUs in them.
void PduLocator::locate(const framing::Arrivals& arrivals, base::ByteView octets,
                        framing::LocatedSegment& out) {
  if (arrivals.in_order(out.range)) return locate_in_order(arrivals, octets, out);
  if (aligned() && config_.out_of_order && !arrivals.is_part(out.range) &&
      octets.size() > wire::kTufHeaderSize && wire::is_tuf_frame(octets, layout_.key)) {
    locate_frame(arrivals, octets, out);
  }
}

/// Finds the end of the PDU at the delivery point, which began before the segment. False: it does
/// not end in the segment.
bool PduLocator::locate_front(const framing::Arrivals& arrivals, base::ByteView octets,
                              framing::LocatedSegment& out, uint64_t& frame_end) const {
  const base::Range range = out.range;
  const uint64_t begin = arrivals.place_next();
  if (begin == range.begin) {
    out.front_end = begin;
    return true;
  }
  const auto fetch = [&](uint64_t offset, uint8_t* dst, uint32_t n) {
    return fetch_in_order(arrivals.held(), range, octets, offset, dst, n);
  };
  Unit unit;
  framing::PduError error = framing::PduError::None;
  const Parsed parsed = parse_unit(layout_, begin, frame_end, fetch, unit, error);
  if (parsed == Parsed::Known && arrivals.placed().first_begin_from(begin) < unit.end) {
    error = framing::PduError::BadLength;  // it would reach into a PDU that was found
  } else if (parsed != Parsed::Bad) {
    error = framing::PduError::None;
  }
  if (error != framing::PduError::None) {
    out.front_end = range.begin;
    out.next = begin;
    out.bad = error;
    return false;
  }
  if (parsed == Parsed::NeedMore || unit.end > range.end) return false;
  out.front_end = unit.end;
  frame_end = unit.frame_end;
  return true;
}

void PduLocator::locate_in_order(const framing::Arrivals& arrivals, base::ByteView octets,
                                 framing::LocatedSegment& out) const {
  const base::Range range = out.range;
  const auto fetch = [&](uint64_t offset, uint8_t* dst, uint32_t n) {
    return fetch_in_order(arrivals.held(), range, octets, offset, dst, n);
  };
  uint64_t frame_end = frame_end_;
  if (!locate_front(arrivals, octets, out, frame_end)) return;
  out.next = out.front_end;
  while (out.next < range.end && out.count < framing::kLocatedMax) {
    Unit unit;
    framing::PduError error = framing::PduError::None;
    const Parsed parsed = parse_unit(layout_, out.next, frame_end, fetch, unit, error);
    if (parsed == Parsed::NeedMore) return;
    if (parsed == Parsed::Known && arrivals.placed().first_begin_from(out.next) < unit.end) {
      error = framing::PduError::BadLength;
    } else if (parsed == Parsed::Known && unit.end > range.end) {
      return;
    } else if (parsed == Parsed::Known && !markers_right(layout_.grid, unit, fetch)) {
      error = framing::PduError::BadMarker;
    }
    out.bad = error;
    if (error != framing::PduError::None) return;
    out.whole[out.count++] = span_of(unit);
    out.next = unit.end;
    frame_end = unit.frame_end;
  }
}

/// Reports no error: an error is raised when the order reaches the framing PDU.
void PduLocator::locate_frame(const framing::Arrivals& arrivals, base::ByteView octets,
                              framing::LocatedSegment& out) const {
  static_cast<void>(arrivals);
  const base::Range range = out.range;
  const auto fetch = [&](uint64_t offset, uint8_t* dst, uint32_t n) {
    if (offset + n > range.end) return false;
    std::copy_n(octets.data() + (offset - range.begin), n, dst);
    return true;
  };
  out.front_end = out.next = range.begin;
  uint64_t frame_end = range.begin;
  while (out.next < range.end && out.count < framing::kLocatedMax) {
    Unit unit;
    framing::PduError error = framing::PduError::None;
    if (parse_aligned(layout_, out.next, frame_end, fetch, unit, error) != Parsed::Known) return;
    out.whole[out.count++] = span_of(unit);
    out.next = unit.end;
    frame_end = unit.frame_end;
  }
}

/// Finds the PDU to which a marker of a held range points (s.6). If the begin or end of the range
/// cuts a marker, one of its two copies may still be whole. kNotLocatable: the copies differ.
uint64_t PduLocator::first_in(const framing::Arrivals& arrivals, base::Range held) const {
  if (aligned()) return framing::kUnlocated;
  if (arrivals.placed().ends_at(held.begin)) return held.begin;
  const MarkerGrid& grid = layout_.grid;
  const uint64_t low = held.begin - std::min<uint64_t>(held.begin - grid.start(), 3);
  for (uint64_t marker = grid.next(low); marker < held.end; marker = grid.next(marker + 1)) {
    std::array<uint8_t, 2> copy;
    std::array<uint8_t, 2> second;
    const framing::HeldOctets& octets = arrivals.held();
    const bool has_first = marker >= held.begin && fetch_held(octets, marker, copy.data(), 2);
    const bool has_second =
        marker + 2 >= held.begin && fetch_held(octets, marker + 2, second.data(), 2);
    if (has_first && has_second && copy != second) return framing::kNotLocatable;
    if (!has_first && !has_second) continue;
    const uint16_t offset = base::load_be16(has_first ? copy.data() : second.data());
    const uint64_t target = marker + wire::kTufMarkerSize + offset;
    // A marker in front of the PDU belongs to it.
    const uint64_t begin =
        target >= grid.start() + wire::kTufMarkerSize && grid.at(target - wire::kTufMarkerSize)
            ? target - wire::kTufMarkerSize
            : target;
    if (begin >= held.begin) return begin;
  }
  return framing::kUnlocated;
}

/// In alignment mode a framing PDU in held octets is found only in order.
framing::Extent PduLocator::extent(const framing::Arrivals& arrivals, uint64_t at,
                                   framing::PduSpan& span, framing::PduError& error) const {
  if (aligned() && at != arrivals.place_next()) return framing::Extent::Unknown;
  const auto fetch = [&](uint64_t offset, uint8_t* dst, uint32_t n) {
    return fetch_held(arrivals.held(), offset, dst, n);
  };
  Unit unit;
  framing::PduError why = framing::PduError::None;
  switch (parse_unit(layout_, at, frame_end_, fetch, unit, why)) {
    case Parsed::NeedMore: return framing::Extent::Unknown;
    case Parsed::Bad: error = why; return framing::Extent::Bad;
    case Parsed::Known: break;
  }
  span = span_of(unit);
  return framing::Extent::Known;
}

framing::PduError PduLocator::verify(const framing::PduSpan& span, const uint8_t* data) const {
  const auto fetch = [&](uint64_t offset, uint8_t* dst, uint32_t n) {
    if (offset + n > span.end) return false;
    std::copy_n(data + (offset - span.begin), n, dst);
    return true;
  };
  return markers_right(layout_.grid, unit_of(span), fetch) ? framing::PduError::None
                                                           : framing::PduError::BadMarker;
}

/// Collects the pieces of the PDU between its markers, without the octets that are skipped.
llp::UlpduView PduLocator::view(const framing::PduSpan& span, const uint8_t* data) {
  base::ByteView* pieces = store_.pieces();
  size_t count = 0;
  uint64_t at = layout_.grid.end_of(span.header, skip_);
  for (uint32_t left = span.ulpdu_length; left != 0;) {
    at = layout_.grid.after(at);
    const auto run = static_cast<uint32_t>(std::min<uint64_t>(layout_.grid.next(at) - at, left));
    pieces[count++] = {data + (at - span.begin), run};
    at += run;
    left -= run;
  }
  return {{pieces, count}, span.ulpdu_length};
}

}  // namespace rnic::tuf

template class rnic::framing::Receiver<rnic::tuf::PduLocator>;

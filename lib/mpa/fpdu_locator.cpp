#include "mpa/fpdu_locator.hpp"

#include <algorithm>
#include <array>

#include "base/endian.hpp"
#include "framing/receiver_steps.hpp"

namespace rnic::mpa {

using framing::PduError;

/// Walks through the FPDUs of a segment from the first known start, each by its own length, as long
/// as they are valid (RFC 5044 s.6, methods 1 and 3).
void FpduLocator::locate(const framing::Arrivals& arrivals, base::ByteView octets,
                         framing::LocatedSegment& out) {
  drop_policy_.forget_proven();
  const base::Range range = out.range;
  const MarkerGrid& grid = reader_.grid();
  uint64_t at = 0;
  if (!find_first(arrivals, out, octets, at)) return;
  out.front_end = at;
  const uint8_t* data = octets.data() + (at - range.begin);
  uint32_t count = 0;
  while (at < range.end && count < framing::kLocatedMax) {
    const uint64_t header = fpdu_header(grid, at);
    if (header + wire::kMpaLengthSize > range.end) {
      out.cut = true;
      break;
    }
    framing::PduSpan& span = out.whole[count];
    find_fpdu(grid, at, base::load_be16(data + (header - at)), span);
    if (span.end > range.end) {
      out.cut = true;
      // It would reach into an FPDU that was proven, so its length is wrong.
      if (arrivals.placed().first_begin_from(range.end) < span.end) {
        out.bad = overlap();
        out.droppable = true;
      }
      break;
    }
    const PduError error = reader_.verify(span, data);
    if (error != PduError::None) [[unlikely]] {
      out.bad = error;
      out.droppable = error == PduError::Crc;
      break;
    }
    ++count;
    data += span.size();
    at = span.end;
  }
  out.count = count;
  out.next = at;
}

/// Finds the first FPDU of the segment whose begin is known for certain. False: there is none.
bool FpduLocator::find_first(const framing::Arrivals& arrivals,
                             const framing::LocatedSegment& segment, base::ByteView octets,
                             uint64_t& first) const {
  const base::Range range = segment.range;
  if (arrivals.in_order(range)) {
    first = range.begin;
    if (arrivals.place_next() == range.begin) [[likely]]
      return true;
    return end_of_started(arrivals, arrivals.place_next(), range, octets, first) &&
           first >= range.begin && first <= range.end;
  }
  return find_early(arrivals, range, octets, first);
}

[[gnu::noinline]] bool FpduLocator::find_early(const framing::Arrivals& arrivals, base::Range range,
                                               base::ByteView octets, uint64_t& first) const {
  if (!out_of_order_) return false;
  bool inside = false;
  if (find_by_neighbour(arrivals, range, octets, first, inside)) return true;
  if (inside || !reader_.grid().on()) return false;  // MPA-6-06: without markers nothing locates it
  first = find_by_marker(range, octets);
  return first != framing::kUnlocated;
}

/// Finds the first FPDU by RFC 5044 s.6, method 3, across segments: a proven FPDU ends where this
/// segment begins, or a located one reaches into it. `inside`: the whole segment belongs to the
/// latter.
bool FpduLocator::find_by_neighbour(const framing::Arrivals& arrivals, base::Range range,
                                    base::ByteView octets, uint64_t& first, bool& inside) const {
  if (arrivals.placed().ends_at(range.begin)) {
    first = range.begin;
    return true;
  }
  const uint32_t left = arrivals.held().ending_at(range.begin);
  if (left == framing::kNone) return false;
  const uint64_t started = arrivals.held().node(left).next_pdu;
  if (started >= framing::kNotLocatable) return false;
  first = range.begin;
  if (started == range.begin) return true;
  if (end_of_started(arrivals, started, range, octets, first) && first >= range.begin &&
      first <= range.end) {
    return true;
  }
  inside = true;
  return false;
}

[[gnu::noinline]] bool FpduLocator::end_of_started(const framing::Arrivals& arrivals,
                                                   uint64_t begin, base::Range range,
                                                   base::ByteView octets, uint64_t& end) const {
  framing::PduSpan span;
  if (!reader_.find(arrivals.held(), begin, range, octets, span)) return false;
  end = span.end;
  return true;
}

/// Finds the first FPDU that begins in the range and to which a marker in the range points (RFC
/// 5044 s.6, method 2).
uint64_t FpduLocator::find_by_marker(base::Range range, base::ByteView octets) const {
  for (uint64_t marker = reader_.grid().next(range.begin);
       marker + wire::kMpaMarkerSize <= range.end; marker += wire::kMpaMarkerInterval) {
    const uint64_t begin = reader_.marker_target(marker, octets.data() + (marker - range.begin));
    if (begin == framing::kUnlocated || begin >= range.begin) return begin;
  }
  return framing::kUnlocated;
}

/// A held range begins with an FPDU if a proven one ends there; otherwise its markers locate the
/// first FPDU (RFC 5044 s.6).
uint64_t FpduLocator::first_in(const framing::Arrivals& arrivals, base::Range held) const {
  if (arrivals.placed().ends_at(held.begin)) return held.begin;
  if (!reader_.grid().on()) return framing::kUnlocated;
  for (uint64_t marker = reader_.grid().next(held.begin); marker + wire::kMpaMarkerSize <= held.end;
       marker += wire::kMpaMarkerInterval) {
    std::array<uint8_t, wire::kMpaMarkerSize> octets;
    arrivals.held().copy({marker, marker + octets.size()}, octets.data());
    const uint64_t begin = reader_.marker_target(marker, octets.data());
    if (begin == framing::kUnlocated) return framing::kNotLocatable;
    if (begin >= held.begin) return begin;
  }
  return framing::kUnlocated;
}

/// This finds no error, since any 16 bits can be a ULPDU_Length.
framing::Extent FpduLocator::extent(const framing::Arrivals& arrivals, uint64_t at,
                                    framing::PduSpan& span, framing::PduError& error) const {
  static_cast<void>(error);
  return reader_.find(arrivals.held(), at, span) ? framing::Extent::Known
                                                 : framing::Extent::Unknown;
}

static_assert(wire::kMpaMarkerInterval >= framing::kMarkerIntervalMin, "as many pieces as fit");

/// Collects the pieces of the ULPDU between its markers: behind the first one each has as many
/// octets as there are between two markers.
llp::UlpduView FpduLocator::view_between_markers(const framing::PduSpan& span,
                                                 const uint8_t* data) {
  constexpr uint32_t kBetween = wire::kMpaMarkerInterval - wire::kMpaMarkerSize;
  const MarkerGrid& grid = reader_.grid();
  base::ByteView* piece = store_.pieces();
  uint64_t at = span.header + wire::kMpaLengthSize;
  if (grid.at(at)) at += wire::kMpaMarkerSize;
  data += at - span.begin;
  uint32_t left = span.ulpdu_length;
  if (const uint32_t first = std::min(left, grid.on() ? grid.distance(at) : left); first != 0) {
    *piece++ = {data, first};
    left -= first;
    data += first + wire::kMpaMarkerSize;
  }
  for (; left >= kBetween; left -= kBetween, data += wire::kMpaMarkerInterval) {
    *piece++ = {data, kBetween};
  }
  if (left != 0) *piece++ = {data, left};
  const uint32_t gap = grid.on() ? wire::kMpaMarkerSize : 0;
  return {{store_.pieces(), piece}, span.ulpdu_length, gap, kBetween};
}

}  // namespace rnic::mpa

template class rnic::framing::Receiver<rnic::mpa::FpduLocator>;

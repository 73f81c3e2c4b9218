// Finding FPDUs in a segment and proving them (RFC 5044 s.4.4, s.6).
#include <algorithm>

#include "base/endian.hpp"
#include "base/sabotage.hpp"
#include "crc/crc.hpp"
#include "mpa/fpdu_rx.hpp"

namespace rnic::mpa {

using llp::FramingError;

namespace {

constexpr uint64_t kFpduptrMax = 0xfffc;

}  // namespace

/// Walks the FPDUs of a segment from the first known start, each by its own length, as long as they
/// are valid (RFC 5044 s.6, methods 1 and 3).
void FpduReceiver::locate(base::Range range, base::ByteView octets, framing::LocatedSegment& out) {
  out.owner = this;
  out.range = range;
  out.front_end = range.end;
  out.next = framing::kUnlocated;
  out.count = 0;
  out.bad = FramingError::None;
  out.droppable = out.cut = false;

  uint64_t at = 0;
  if (!find_first(out, octets, at)) return;
  out.front_end = at;
  while (at < range.end && out.count < framing::kLocatedMax) {
    const uint64_t header = fpdu_header(grid_, at);
    out.cut = header + wire::kMpaLengthSize > range.end;
    if (out.cut) break;
    const uint8_t* data = octets.data() + (at - range.begin);
    const framing::PduSpan span = fpdu_span(grid_, at, base::load_be16(data + (header - at)));
    if (span.end > range.end) {
      out.cut = true;
      // It cannot reach over an FPDU that was proven: its length is wrong.
      if (placed_.first_begin_from(range.end) < span.end) {
        out.bad = FramingError::MarkerMismatch;
        out.droppable = true;
      }
      break;
    }
    out.bad = verify(span, data);
    out.droppable = out.bad == FramingError::Crc;
    if (out.bad != FramingError::None) break;
    out.whole[out.count++] = span;
    at = span.end;
  }
  out.next = at;
}

/// The first FPDU start in the segment that is known for certain. False: none.
bool FpduReceiver::find_first(framing::LocatedSegment& out, base::ByteView octets,
                              uint64_t& first) {
  const base::Range range = out.range;
  if (in_order(range)) {
    first = range.begin;
    if (place_next_ == range.begin) return true;
    return end_of_started(place_next_, range, octets, first) && first >= range.begin &&
           first <= range.end;
  }
  if (!config_.out_of_order) return false;
  bool inside = false;
  if (find_by_neighbour(out, octets, first, inside)) return true;
  if (inside || !grid_.on()) return false;  // MPA-6-06: no marker, no place
  first = find_by_marker(range, octets);
  return first != framing::kUnlocated;
}

/// Method 3 across segments: a proven FPDU ends where this segment begins, or a located one reaches
/// into it.
bool FpduReceiver::find_by_neighbour(framing::LocatedSegment& out, base::ByteView octets,
                                     uint64_t& first, bool& inside) {
  const base::Range range = out.range;
  if (placed_.ends_at(range.begin)) {
    first = range.begin;
    return true;
  }
  const uint32_t left = held_.ending_at(range.begin);
  if (left == framing::kNone) return false;
  const uint64_t started = held_.node(left).next_pdu;
  if (started >= framing::kNotLocatable) return false;
  first = range.begin;
  if (started == range.begin) return true;
  if (end_of_started(started, range, octets, first) && first >= range.begin && first <= range.end) {
    return true;
  }
  inside = true;
  return false;
}

/// Method 2. The first FPDU that begins in the range and that a marker in the range points to.
uint64_t FpduReceiver::find_by_marker(base::Range range, base::ByteView octets) const {
  for (uint64_t marker = grid_.next(range.begin); marker + wire::kMpaMarkerSize <= range.end;
       marker += wire::kMpaMarkerInterval) {
    const uint64_t begin = marker_target(marker, octets.data() + (marker - range.begin));
    if (begin == framing::kUnlocated || begin >= range.begin) return begin;
  }
  return framing::kUnlocated;
}

/// First octet of the FPDU that a marker belongs to. FPDUPTR is hostile: it is only subtracted, and
/// what comes out must lie behind the MPA start and not where a marker stands; kUnlocated
/// otherwise.
uint64_t FpduReceiver::marker_target(uint64_t marker, const uint8_t* octets) const {
  const uint32_t fpduptr = wire::load_mpa_fpduptr(octets);
  if (fpduptr == 0) return marker;
  if (fpduptr >= marker - grid_.start() || grid_.at(marker - fpduptr)) return framing::kUnlocated;
  const uint64_t header = marker - fpduptr;
  const uint64_t before = header - wire::kMpaMarkerSize;
  return grid_.at(before) ? before : header;
}

/// The place of the FPDU that begins at `begin`, its length being held or in the segment.
bool FpduReceiver::started_span(uint64_t begin, base::Range range, base::ByteView octets,
                                framing::PduSpan& span) const {
  const uint64_t header = fpdu_header(grid_, begin);
  uint32_t length = 0;
  for (uint64_t at = header; at < header + wire::kMpaLengthSize; ++at) {
    uint8_t octet = 0;
    if (range.contains(at)) {
      octet = octets[at - range.begin];
    } else if (held_.containing(at) != framing::kNone) {
      octet = held_.octet(at);
    } else {
      return false;
    }
    length = length << 8 | octet;
  }
  span = fpdu_span(grid_, begin, length);
  return true;
}

bool FpduReceiver::end_of_started(uint64_t begin, base::Range range, base::ByteView octets,
                                  uint64_t& end) const {
  framing::PduSpan span;
  if (!started_span(begin, range, octets, span)) return false;
  end = span.end;
  return true;
}

/// CRC first (RFC 5044 s.4.4), then the markers inside (s.8, error 3).
FramingError FpduReceiver::verify(const framing::PduSpan& span, const uint8_t* data) const {
  if (crc_ && !base::sabotaged(base::Defect::PlaceBeforeCrc)) {
    const size_t covered = span.size() - wire::kMpaCrcSize;
    const uint32_t value = crc::finish(crc::update(crc::kInit, data, covered));
    if (value != base::load_le32(data + covered)) return FramingError::Crc;
  }
  if (!grid_.on()) return FramingError::None;
  // RFC 5044 s.8 leaves it open. Without a CRC nothing else would contradict a wrong pointer.
  if (!config_.check_all_markers && crc_) return FramingError::None;
  for (uint64_t marker = grid_.next(span.begin); marker < span.end;
       marker += wire::kMpaMarkerInterval) {
    const uint64_t expected = marker < span.header ? 0 : marker - span.header;
    if (expected > kFpduptrMax) break;  // a ULPDU over 64768 octets: FPDUPTR cannot say it
    if (wire::load_mpa_fpduptr(data + (marker - span.begin)) != expected) {
      return FramingError::MarkerMismatch;
    }
  }
  return FramingError::None;
}

/// The ULPDU without its markers; the pieces live in the store until the next view.
llp::UlpduView FpduReceiver::view(const framing::PduSpan& span, const uint8_t* data) {
  base::ByteView* pieces = store_.pieces();
  size_t count = 0;
  uint64_t at = span.header + wire::kMpaLengthSize;
  uint32_t left = span.ulpdu_length;
  while (left != 0) {
    uint32_t run = left;
    if (grid_.on()) {
      if (grid_.at(at)) at += wire::kMpaMarkerSize;
      run = std::min<uint32_t>(left, grid_.distance(at));
    }
    pieces[count++] = {data + (at - span.begin), run};
    at += run;
    left -= run;
  }
  return {{pieces, count}, span.ulpdu_length};
}

}  // namespace rnic::mpa

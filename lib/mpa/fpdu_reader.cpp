#include "mpa/fpdu_reader.hpp"

#include <algorithm>

namespace rnic::mpa {

using framing::PduError;

namespace {

constexpr uint64_t kFpduptrMax = 0xfffc;

}  // namespace

/// A peer may send any FPDUPTR: a target is accepted only if it lies behind the start of the
/// stream's FPDUs and not in the place of a marker.
uint64_t FpduReader::marker_target(uint64_t marker, const uint8_t* octets) const {
  const uint32_t fpduptr = wire::load_mpa_marker(octets);
  if (fpduptr == 0) return marker;
  if (fpduptr >= marker - grid_.start() || grid_.at(marker - fpduptr)) return framing::kUnlocated;
  const uint64_t header = marker - fpduptr;
  const uint64_t before = header - wire::kMpaMarkerSize;
  return grid_.at(before) ? before : header;
}

bool FpduReader::find(const framing::HeldOctets& held, uint64_t begin, base::Range range,
                      base::ByteView octets, framing::PduSpan& span) const {
  const uint64_t header = fpdu_header(grid_, begin);
  uint32_t length = 0;
  for (uint64_t at = header; at < header + wire::kMpaLengthSize; ++at) {
    uint8_t octet = 0;
    if (range.contains(at)) {
      octet = octets[at - range.begin];
    } else if (held.containing(at) != framing::kNone) {
      octet = held.octet(at);
    } else {
      return false;
    }
    length = length << 8 | octet;
  }
  find_fpdu(grid_, begin, length, span);
  return true;
}

[[gnu::noinline]] PduError FpduReader::verify_markers(const framing::PduSpan& span,
                                                      const uint8_t* data) const {
  const uint64_t first = grid_.next(span.begin);
  uint64_t expected = first < span.header ? 0 : first - span.header;
  // Behind so many octets, in a ULPDU of more than 64768, FPDUPTR has no room.
  const uint64_t end = std::min(span.end, span.header + kFpduptrMax + 1);
  const uint8_t* marker = data + (first - span.begin);
  for (uint64_t at = first; at < end; at += wire::kMpaMarkerInterval) {
    if (wire::load_mpa_marker(marker) != expected) return PduError::BadMarker;
    marker += wire::kMpaMarkerInterval;
    expected = at + wire::kMpaMarkerInterval - span.header;
  }
  return PduError::None;
}

}  // namespace rnic::mpa

/// \file
/// Computes the places of markers from stream offsets (RFC 5044 s.4.3), and from these the place of
/// an FPDU in the stream.
#pragma once

#include <algorithm>
#include <cstdint>

#include "framing/pdu_span.hpp"
#include "wire/mpa.hpp"

namespace rnic::mpa {

/// The markers of one direction: one begins at every offset S with (S - start) mod 512 = 0, where
/// the octets of markers count, too. Callers pass no offset below `start`.
class MarkerGrid {
 public:
  MarkerGrid() = default;
  MarkerGrid(bool on, uint64_t start) : start_(start), on_(on) {}

  [[nodiscard]] bool on() const { return on_; }
  [[nodiscard]] uint64_t start() const { return start_; }
  /// A marker begins at `offset`.
  [[nodiscard]] bool at(uint64_t offset) const { return on_ && distance(offset) == 0; }
  /// Octets from `offset` to the first marker at or behind it; only with markers on.
  [[nodiscard]] uint32_t distance(uint64_t offset) const {
    return static_cast<uint32_t>((start_ - offset) & (wire::kMpaMarkerInterval - 1));
  }
  /// The first marker at or behind `offset`; only with markers on.
  [[nodiscard]] uint64_t next(uint64_t offset) const { return offset + distance(offset); }
  /// The number of markers that begin in [begin, end).
  [[nodiscard]] uint32_t count(uint64_t begin, uint64_t end) const;

 private:
  uint64_t start_ = 0;
  bool on_ = false;
};

/// Stream offset of ULPDU_Length in the FPDU that begins at `begin`.
[[nodiscard]] inline uint64_t fpdu_header(const MarkerGrid& grid, uint64_t begin) {
  return grid.at(begin) ? begin + wire::kMpaMarkerSize : begin;
}

/// Finds the place of an FPDU that begins at `begin`, with a ULPDU of this length. \param span gets
/// it, field by field: a copy of all would wait for the fields.
inline void find_fpdu(const MarkerGrid& grid, uint64_t begin, uint32_t ulpdu_length,
                      framing::PduSpan& span) {
  const uint32_t content = wire::mpa_fpdu_size(ulpdu_length);
  uint64_t header = begin;
  uint64_t end = begin + content;
  if (grid.on()) {
    const uint32_t first = grid.distance(begin);
    if (first == 0) header += wire::kMpaMarkerSize;
    // A marker belongs to the FPDU whose content it precedes: one behind the CRC is part of the
    // next FPDU.
    constexpr uint32_t kBetween = wire::kMpaMarkerInterval - wire::kMpaMarkerSize;
    if (content > first) end += wire::kMpaMarkerSize * (1 + (content - first - 1) / kBetween);
  }
  span.begin = begin;
  span.header = header;
  span.end = end;
  span.ulpdu_length = ulpdu_length;
  span.unit_end = 0;
}
[[nodiscard]] inline framing::PduSpan fpdu_span(const MarkerGrid& grid, uint64_t begin,
                                                uint32_t ulpdu_length) {
  framing::PduSpan span;
  find_fpdu(grid, begin, ulpdu_length, span);
  return span;
}

/// The longest ULPDU whose FPDU, begun at `begin`, fits `room` octets; 0 when none does.
[[nodiscard]] inline uint32_t ulpdu_room(const MarkerGrid& grid, uint64_t begin, uint32_t room) {
  uint32_t content = room & ~3u;
  if (grid.on()) [[unlikely]]
    content -= wire::kMpaMarkerSize * grid.count(begin, begin + content);
  constexpr uint32_t kOverhead = wire::kMpaLengthSize + wire::kMpaCrcSize;
  if (content < kOverhead) return 0;
  return std::min(content - kOverhead, wire::kMpaUlpduMax);
}

/// MULPDU of an EMSS (RFC 5044 s.4.5), clamped to what framing/mulpdu.hpp allows.
[[nodiscard]] uint32_t mulpdu_of(uint32_t emss, bool markers);

}  // namespace rnic::mpa

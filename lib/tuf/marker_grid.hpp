/// \file
/// Computes the places of the markers of marker mode (s.6) from stream offsets.
#pragma once

#include <cstdint>

#include "base/check.hpp"
#include "tuf/modes.hpp"

namespace rnic::tuf {

/// The markers of one direction: four octets at `start`, where framing was enabled, and then one
/// marker in each interval, which includes the marker's octets. Callers pass no offset below
/// `start`.
///
/// The interval may change at a marker (appendix A.6, A.7). The markers before that one stay where
/// they were, so that octets sent before can be sent again.
class MarkerGrid {
 public:
  MarkerGrid() = default;
  MarkerGrid(uint64_t start, uint16_t interval)
      : start_(start), change_(UINT64_MAX), interval_(interval), later_(interval) {}

  [[nodiscard]] bool on() const { return interval_ != 0; }
  [[nodiscard]] uint64_t start() const { return start_; }
  /// The interval behind the last change.
  [[nodiscard]] uint16_t interval() const { return later_; }

  /// The first marker at or behind `offset`; UINT64_MAX without markers.
  [[nodiscard]] uint64_t next(uint64_t offset) const {
    if (!on()) return UINT64_MAX;
    if (offset > change_) return step(change_, later_, offset);
    return step(start_, interval_, offset);
  }
  /// A marker begins at `offset`.
  [[nodiscard]] bool at(uint64_t offset) const { return on() && next(offset) == offset; }
  /// `offset` itself, or the offset behind the marker that begins there.
  [[nodiscard]] uint64_t after(uint64_t offset) const {
    return at(offset) ? offset + wire::kTufMarkerSize : offset;
  }
  /// The offset behind `content` octets that are no part of a marker, counted from `begin` on.
  [[nodiscard]] uint64_t end_of(uint64_t begin, uint64_t content) const;
  /// The number of markers that begin in [begin, end).
  [[nodiscard]] uint32_t count(uint64_t begin, uint64_t end) const;

  /// Changes the interval from the first marker at or behind `offset` on. False: an earlier change
  /// lies at or behind `keep`. \param keep octets below this offset are not needed any more
  bool change_interval(uint64_t offset, uint16_t interval, uint64_t keep);
  /// Checks that the interval changes at a marker.
  void validate() const {
    if (!on()) return;
    RNIC_CHECK(later_ != 0 && start_ <= change_);
    RNIC_CHECK(change_ == UINT64_MAX || (change_ - start_) % interval_ == 0);
  }

 private:
  [[nodiscard]] static uint64_t step(uint64_t from, uint16_t interval, uint64_t offset) {
    return offset + (interval - (offset - from) % interval) % interval;
  }

  uint64_t start_ = 0;
  uint64_t change_ = 0;    // offset of the marker from which on markers are `later_` apart
  uint16_t interval_ = 0;  // 0: no markers
  uint16_t later_ = 0;
};

/// Next PDU Offset of the marker at `marker` (s.6): octets of the stream from the end of the marker
/// to the first octet of the next PDU. \param pdu_end end of the PDU that contains the marker
[[nodiscard]] inline uint16_t next_pdu_offset(const MarkerGrid& grid, uint64_t marker,
                                              uint64_t pdu_end) {
  return static_cast<uint16_t>(grid.after(pdu_end) - marker - wire::kTufMarkerSize);
}

/// The longest PDU that may begin at `begin`: 2^16 - 8 less the markers inside it (s.3).
[[nodiscard]] uint32_t marked_pdu_max(const MarkerGrid& grid, uint64_t begin);

}  // namespace rnic::tuf

/// \file
/// What has arrived of a stream, and how far its PDUs have come.
#pragma once

#include <algorithm>
#include <cstdint>

#include "base/bytes.hpp"
#include "framing/hold_store.hpp"
#include "framing/placed_list.hpp"
#include "framing/segment_parts.hpp"

namespace rnic::framing {

/// What a Locator may look at. Only a Receiver, which is one, changes it.
///
/// Cursors: octets below `ordered_` are complete; PDUs below `deliver_next_` are delivered; PDUs
/// below `place_next_` that the order has reached are placed. deliver_next_ <= place_next_ <=
/// ordered_ between calls.
class Arrivals {
 public:
  [[nodiscard]] const HeldOctets& held() const { return held_; }
  [[nodiscard]] const PlacedList& placed() const { return placed_; }
  /// The range begins at the delivery point.
  [[nodiscard]] bool in_order(base::Range range) const { return range.begin == arrived_; }
  /// It is all that is new of a segment, but not all of the segment.
  [[nodiscard]] bool is_part(base::Range range) const { return parts_.contains(range); }
  /// Stream offset behind the octets that have come in order.
  [[nodiscard]] uint64_t arrived() const { return arrived_; }
  [[nodiscard]] uint64_t ordered() const { return ordered_; }
  /// Begin of the first PDU in order that was not handed up for placement.
  [[nodiscard]] uint64_t place_next() const { return place_next_; }

 protected:
  Arrivals(HoldStore& store, uint64_t hold_limit, uint32_t early_limit)
      : held_(store, hold_limit), placed_(store, early_limit) {}

  uint64_t arrived_ = 0;  // ordered_ and the in-order octets placed since
  uint64_t ordered_ = 0;
  uint64_t place_next_ = 0;
  uint64_t deliver_next_ = 0;
  HeldOctets held_;
  PlacedList placed_;
  SegmentParts parts_;
};

}  // namespace rnic::framing

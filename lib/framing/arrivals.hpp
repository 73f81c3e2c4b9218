/// \file
/// Keeps track of the octets that have arrived of a stream, and of the PDUs that are placed and
/// delivered.
#pragma once

#include <algorithm>
#include <cstdint>

#include "base/bytes.hpp"
#include "base/check.hpp"
#include "framing/hold_store.hpp"
#include "framing/placed_list.hpp"
#include "framing/segment_parts.hpp"

namespace rnic::framing {

/// A Locator reads this state; only the Receiver, which derives from it, changes it.
///
/// Three cursors follow the stream: octets below `ordered_` are complete, PDUs below `place_next_`
/// are placed, and PDUs below `deliver_next_` are delivered. Between calls deliver_next_ <=
/// place_next_ <= ordered_.
class Arrivals {
 public:
  [[nodiscard]] const HeldOctets& held() const { return held_; }
  [[nodiscard]] const PlacedList& placed() const { return placed_; }
  /// The range begins at the delivery point. While a PDU waits for its buffer no range does: all
  /// octets that come then are ahead of the order.
  [[nodiscard]] bool in_order(base::Range range) const {
    return range.begin == arrived_ && !waits_;
  }
  /// The PDU at place_next() is whole, and its user has no buffer for it yet.
  [[nodiscard]] bool waits() const { return waits_; }
  /// The range lies in a segment of which only parts are new.
  [[nodiscard]] bool is_part(base::Range range) const { return parts_.contains(range); }
  /// Stream offset behind the octets that have come in order.
  [[nodiscard]] uint64_t arrived() const { return arrived_; }
  [[nodiscard]] uint64_t ordered() const { return ordered_; }
  /// Stream offset behind the PDUs that were placed in order.
  [[nodiscard]] uint64_t place_next() const { return place_next_; }
  /// Checks the invariants; they hold between calls.
  void validate() const {
    RNIC_CHECK(deliver_next_ <= place_next_ && place_next_ <= ordered_ && ordered_ <= arrived_);
    RNIC_CHECK(!waits_ || held_.containing(place_next_) != kNone);
    held_.validate();
    placed_.validate();
    parts_.validate();
  }

 protected:
  Arrivals(HoldStore& store, uint64_t hold_limit, uint32_t early_limit)
      : held_(store, hold_limit), placed_(store, early_limit) {}

  uint64_t arrived_ = 0;  // >= ordered_: place() is ahead of ordered()
  uint64_t ordered_ = 0;
  uint64_t place_next_ = 0;
  uint64_t deliver_next_ = 0;
  bool waits_ = false;
  HeldOctets held_;
  PlacedList placed_;
  SegmentParts parts_;
};

}  // namespace rnic::framing

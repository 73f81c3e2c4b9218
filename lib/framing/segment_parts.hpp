/// \file
/// The new parts of one segment: each one is inspected by itself, and all of them are kept
/// together.
#pragma once

#include <cstdint>

#include "base/bytes.hpp"
#include "base/check.hpp"

namespace rnic::framing {

/// TCP asks about the parts in their order and commits none before all are accepted, so that the
/// room that one finds is still free when the next is asked about.
class SegmentParts {
 public:
  struct Room {
    base::Range range;   ///< from the first part on, with what lies between the parts
    uint32_t parts = 1;  ///< how many are to be kept in the range
  };

  /// A segment comes of which only parts inside `whole` are new.
  void begin(base::Range whole) {
    whole_ = whole;
    parts_ = 0;
  }
  [[nodiscard]] bool contains(base::Range part) const {
    return whole_.begin <= part.begin && part.end <= whole_.end;
  }
  /// Tells what room to ask for when `part` comes next. \param in_order the part begins at the
  /// delivery point, and so is the first of its segment
  [[nodiscard]] Room with(base::Range part, bool in_order) {
    if (in_order || !contains(part) || part.begin < end_) parts_ = 0;
    if (parts_ == 0) first_ = part.begin;
    end_ = part.end;
    return {{first_, end_}, ++parts_};
  }
  void validate() const { RNIC_CHECK(parts_ == 0 || first_ < end_); }

 private:
  base::Range whole_;
  uint32_t parts_ = 0;  // how many were asked about
  uint64_t first_ = 0;  // where the first of them begins
  uint64_t end_ = 0;    // where the last of them ends
};

}  // namespace rnic::framing

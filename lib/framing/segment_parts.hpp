/// \file
/// The new parts of one segment: each part is inspected by itself, but room is needed for all of
/// them.
#pragma once

#include <cstdint>

#include "base/bytes.hpp"
#include "base/check.hpp"

namespace rnic::framing {

/// TCP asks about the parts in their order and commits none before all are accepted, so the room
/// that one part finds is not taken yet when the next one is asked about. The parts are therefore
/// counted together.
class SegmentParts {
 public:
  struct Room {
    base::Range range;  ///< from the first part to the current one, with the gaps between the parts
    uint32_t parts = 1;  ///< number of parts to be kept in the range
  };

  /// A segment has come of which only parts inside `whole` are new.
  void begin(base::Range whole) {
    whole_ = whole;
    parts_ = 0;
  }
  [[nodiscard]] bool contains(base::Range part) const {
    return whole_.begin <= part.begin && part.end <= whole_.end;
  }
  /// The room that is needed when `part` comes next. \param in_order the part begins at the
  /// delivery point, so it is the first of its segment
  [[nodiscard]] Room with(base::Range part, bool in_order) {
    if (in_order || !contains(part) || part.begin < end_) parts_ = 0;
    if (parts_ == 0) first_ = part.begin;
    end_ = part.end;
    return {{first_, end_}, ++parts_};
  }
  void validate() const { RNIC_CHECK(parts_ == 0 || first_ < end_); }

 private:
  base::Range whole_;
  uint32_t parts_ = 0;  // number of parts asked about
  uint64_t first_ = 0;  // begin of the first of these parts
  uint64_t end_ = 0;    // end of the last of these parts
};

}  // namespace rnic::framing

/// \file
/// The new parts of one segment: each is inspected by itself, and all are kept together.
#pragma once

#include <cstdint>

#include "base/bytes.hpp"

namespace rnic::framing {

/// TCP asks about the parts in their order and commits none before all are accepted, so that the
/// room that one finds is still free when the next is asked about.
class SegmentParts {
 public:
  struct Room {
    base::Range range;   ///< from the first part on; what lies between is counted as well
    uint32_t parts = 1;  ///< that are to be kept in it
  };

  /// A segment comes of which only parts inside `whole` are new.
  void begin(base::Range whole) {
    whole_ = whole;
    parts_ = 0;
  }
  [[nodiscard]] bool contains(base::Range part) const {
    return whole_.begin <= part.begin && part.end <= whole_.end;
  }
  /// What room to ask for. \param in_order the part begins at the delivery point: it is the first
  [[nodiscard]] Room with(base::Range part, bool in_order) {
    if (in_order || !contains(part) || part.begin < end_) parts_ = 0;
    if (parts_ == 0) first_ = part.begin;
    end_ = part.end;
    return {{first_, end_}, ++parts_};
  }

 private:
  base::Range whole_;
  uint32_t parts_ = 0;  // asked about
  uint64_t first_ = 0;  // where the first of them begins
  uint64_t end_ = 0;    // of the last of them
};

}  // namespace rnic::framing

/// \file
/// FlowTable: the connections that are followed, in a table of fixed size.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <utility>
#include <vector>

#include "faults/flow.hpp"

namespace rnic::faults {

/// A set of kWays places for each hash. Where all of them are taken the flow that has been there
/// for longest goes, one that is over before all others.
class FlowTable {
 public:
  static constexpr uint32_t kSets = 256;
  static constexpr uint32_t kWays = 8;

  /// nullptr: it is not followed.
  [[nodiscard]] Flow* find(const FlowEnds& ends) {
    for (Place& place : set_of(ends)) {
      if (place.age != 0 && place.flow.ends() == ends) return &place.flow;
    }
    return nullptr;
  }
  struct Added {
    bool is_new = false;                ///< false: it is the same SYN again
    std::optional<FlowEnds> displaced;  ///< one that was going on, and is not followed any more
  };
  /// Follows a connection that begins.
  Added add(const FlowEnds& ends, base::Seq32 isn) {
    Place* oldest = nullptr;
    for (Place& place : set_of(ends)) {
      const bool same = place.age != 0 && place.flow.ends() == ends;
      if (same && place.flow.isn() == isn) return {};
      if (oldest == nullptr || same || rank(place) < rank(*oldest)) oldest = &place;
      if (same) break;
    }
    Added added{.is_new = true};
    const Flow& before = oldest->flow;
    if (oldest->age != 0 && before.ends() != ends && !before.is_over() && before.is_followed()) {
      added.displaced = before.ends();
    }
    *oldest = {++age_, Flow(ends, isn)};
    return added;
  }

 private:
  struct Place {
    uint64_t age = 0;  // 0: it is free
    Flow flow;
  };
  using Set = std::array<Place, kWays>;

  /// What goes first has the lowest.
  [[nodiscard]] static std::pair<bool, uint64_t> rank(const Place& place) {
    const bool lives = place.age != 0 && !place.flow.is_over();
    return {lives, place.age};
  }
  [[nodiscard]] Set& set_of(const FlowEnds& ends) {
    uint64_t hash = ends.sender.address.low() ^ ends.sender.address.high();
    hash = hash * 31 + (ends.receiver.address.low() ^ ends.receiver.address.high());
    hash = hash * 31 + (uint64_t{ends.sender.port} << 16 | ends.receiver.port);
    hash *= 0x9e3779b97f4a7c15;
    return sets_[hash >> 56];
  }

  std::vector<Set> sets_{kSets};
  uint64_t age_ = 0;
};

}  // namespace rnic::faults

/// \file
/// A fixed-capacity set of disjoint half-open ranges: what of a stream is committed, what is
/// SACKed.
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <span>

#include "base/bytes.hpp"
#include "base/check.hpp"

namespace rnic::base {

/// Sorted, disjoint, non-adjacent ranges of a 64-bit offset space; at most `Capacity` of them.
/// Nothing allocates; `insert` says no when a new range would exceed the capacity.
template <size_t Capacity>
class IntervalSet {
 public:
  [[nodiscard]] std::span<const Range> ranges() const { return {ranges_.data(), count_}; }
  [[nodiscard]] bool empty() const { return count_ == 0; }
  [[nodiscard]] size_t size() const { return count_; }
  void clear() { count_ = 0; }

  /// Octets covered.
  [[nodiscard]] uint64_t covered() const {
    uint64_t sum = 0;
    for (const Range& r : ranges()) sum += r.size();
    return sum;
  }

  /// True when inserting `r` would still fit.
  [[nodiscard]] bool can_insert(Range r) const {
    if (count_ < Capacity) return true;
    const size_t first = first_touching(r);
    return first != upper_touching(r, first);
  }

  /// Adds `r`, merging with what it overlaps or touches. False (and unchanged) when full.
  bool insert(Range r) {
    if (r.empty()) return true;
    const size_t first = first_touching(r);
    const size_t last = upper_touching(r, first);
    if (first == last) {
      if (count_ == Capacity) return false;
      std::copy_backward(ranges_.begin() + first, ranges_.begin() + count_,
                         ranges_.begin() + count_ + 1);
      ranges_[first] = r;
      ++count_;
      return true;
    }
    ranges_[first].begin = std::min(ranges_[first].begin, r.begin);
    ranges_[first].end = std::max(ranges_[last - 1].end, r.end);
    if (last - first == 1) return true;
    std::copy(ranges_.begin() + last, ranges_.begin() + count_, ranges_.begin() + first + 1);
    count_ -= last - first - 1;
    return true;
  }

  /// Removes everything below `offset`.
  void erase_below(uint64_t offset) {
    size_t drop = 0;
    while (drop < count_ && ranges_[drop].end <= offset) ++drop;
    std::copy(ranges_.begin() + drop, ranges_.begin() + count_, ranges_.begin());
    count_ -= drop;
    if (count_ != 0 && ranges_[0].begin < offset) ranges_[0].begin = offset;
  }

  [[nodiscard]] bool contains(Range r) const {
    for (const Range& have : ranges()) {
      if (have.begin <= r.begin && r.end <= have.end) return true;
    }
    return r.empty();
  }

  [[nodiscard]] bool intersects(Range r) const {
    for (const Range& have : ranges()) {
      if (have.begin < r.end && r.begin < have.end) return true;
    }
    return false;
  }

  /// The first part of `r` that the set does not cover; empty when all of it is covered.
  [[nodiscard]] Range first_gap(Range r) const {
    for (const Range& have : ranges().subspan(first_touching(r))) {
      if (have.end <= r.begin) continue;
      if (have.begin > r.begin) return {r.begin, std::min(r.end, have.begin)};
      r.begin = have.end;
      if (r.empty()) return {r.begin, r.begin};
    }
    return r.empty() ? Range{r.begin, r.begin} : r;
  }

  /// Checks that the ranges are sorted, not empty, and apart from each other.
  void validate() const {
    RNIC_CHECK(count_ <= Capacity);
    for (size_t i = 0; i < count_; ++i) {
      RNIC_CHECK(!ranges_[i].empty());
      RNIC_CHECK(i == 0 || ranges_[i - 1].end < ranges_[i].begin);
    }
  }

 private:
  /// Index of the first range that overlaps or touches r or lies behind it. The search begins at
  /// the end, since what arrives is mostly near it.
  [[nodiscard]] size_t first_touching(Range r) const {
    size_t i = count_;
    while (i != 0 && ranges_[i - 1].end >= r.begin) --i;
    return i;
  }
  /// Index past the last range that overlaps or touches r. \param first first_touching(r)
  [[nodiscard]] size_t upper_touching(Range r, size_t first) const {
    while (first < count_ && ranges_[first].begin <= r.end) ++first;
    return first;
  }

  std::array<Range, Capacity> ranges_{};
  size_t count_ = 0;  // Invariant: <= Capacity; ranges_[0..count_) sorted, with gaps between them.
};

}  // namespace rnic::base

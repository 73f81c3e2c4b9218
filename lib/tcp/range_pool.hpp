/// \file
/// Sets of ranges for the few connections that have holes at the moment. An idle connection or one
/// without loss holds none.
#pragma once

#include <cstdint>
#include <span>

#include "base/check.hpp"
#include "base/interval_set.hpp"
#include "base/zero_array.hpp"

namespace rnic::tcp {

/// The largest number of separate ranges that are remembered in each direction: received out of
/// order, and SACKed by the peer.
inline constexpr size_t kMaxRanges = 64;

using RangeSet = base::IntervalSet<kMaxRanges>;

/// The range sets of a stack. All memory is taken at construction and touched at first use.
class RangePool {
 public:
  explicit RangePool(uint32_t sets) : sets_(sets), free_(sets) {}

  [[nodiscard]] bool exhausted() const { return free_.empty(); }
  [[nodiscard]] uint32_t in_use() const { return free_.capacity() - free_.size(); }
  void validate() const { free_.validate(); }
  /// The memory that a pool of this size takes.
  [[nodiscard]] static uint64_t octets_for(uint64_t sets) {
    return base::ZeroArray<RangeSet>::octets_for(sets) + base::FreeNumbers::octets_for(sets);
  }

 private:
  friend class PooledRanges;

  base::ZeroArray<RangeSet> sets_;
  base::FreeNumbers free_;
};

/// An IntervalSet that takes its memory from the pool with the first range and gives it back with
/// the last. insert() fails if the set has no room for another range, or the pool is empty.
class PooledRanges {
 public:
  explicit PooledRanges(RangePool& pool) : pool_(pool) {}
  ~PooledRanges() { clear(); }
  PooledRanges(const PooledRanges&) = delete;
  PooledRanges& operator=(const PooledRanges&) = delete;

  [[nodiscard]] bool empty() const { return set_ == nullptr; }
  [[nodiscard]] std::span<const base::Range> ranges() const {
    return set_ != nullptr ? set_->ranges() : std::span<const base::Range>{};
  }
  [[nodiscard]] bool can_insert(base::Range range) const {
    return set_ != nullptr ? set_->can_insert(range) : !pool_.exhausted();
  }
  bool insert(base::Range range) {
    if (range.empty()) return true;
    if (set_ == nullptr) {
      if (pool_.exhausted()) return false;
      set_ = &pool_.sets_[pool_.free_.take()];
    }
    return set_->insert(range);
  }
  void erase_below(uint64_t offset) {
    if (set_ == nullptr) return;
    set_->erase_below(offset);
    if (set_->empty()) give_back();
  }
  void clear() {
    if (set_ == nullptr) return;
    set_->clear();
    give_back();
  }
  [[nodiscard]] bool contains(base::Range range) const {
    return set_ != nullptr ? set_->contains(range) : range.empty();
  }
  [[nodiscard]] base::Range first_gap(base::Range range) const {
    return set_ != nullptr ? set_->first_gap(range) : range;
  }
  void validate() const {
    if (set_ == nullptr) return;
    RNIC_CHECK(!set_->empty());
    set_->validate();
  }

 private:
  void give_back() {
    pool_.free_.give(static_cast<uint32_t>(set_ - pool_.sets_.data()));
    set_ = nullptr;
  }

  RangePool& pool_;
  RangeSet* set_ = nullptr;  // Invariant: never an empty set.
};

}  // namespace rnic::tcp

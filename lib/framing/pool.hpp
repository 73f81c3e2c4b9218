/// \file
/// A fixed array of list nodes with a free list; nodes refer to each other by index.
#pragma once

#include <cstdint>

#include "base/check.hpp"
#include "base/zero_array.hpp"

namespace rnic::framing {

inline constexpr uint32_t kNone = UINT32_MAX;

/// T has a member `next`, which the pool uses while the node is free. All memory is taken at
/// construction and touched at first use.
template <typename T>
class Pool {
 public:
  explicit Pool(uint32_t capacity) : nodes_(capacity), free_(capacity) {}

  /// \return a node, which may still have the values of its last user; kNone when all are taken
  uint32_t take() {
    if (free_ == 0) return kNone;
    --free_;
    if (head_ == kNone) {
      nodes_[fresh_] = T{};
      return fresh_++;
    }
    const uint32_t index = head_;
    head_ = nodes_[index].next;
    return index;
  }
  void give(uint32_t index) {
    nodes_[index].next = head_;
    head_ = index;
    ++free_;
  }

  T& operator[](uint32_t index) { return nodes_[index]; }
  const T& operator[](uint32_t index) const { return nodes_[index]; }
  [[nodiscard]] uint32_t free() const { return free_; }
  /// Recounts the free nodes.
  void validate() const {
    uint32_t back = 0;
    for (uint32_t i = head_; i != kNone; i = nodes_[i].next) {
      RNIC_CHECK(i < fresh_ && ++back <= fresh_);
    }
    RNIC_CHECK(free_ == back + (nodes_.size() - fresh_));
  }
  /// The memory that a pool of this capacity takes.
  [[nodiscard]] static uint64_t octets_for(uint64_t capacity) {
    return base::ZeroArray<T>::octets_for(capacity);
  }

 private:
  base::ZeroArray<T> nodes_;
  uint32_t head_ = kNone;  // first of the nodes that came back
  uint32_t fresh_ = 0;     // the lowest node that was never taken
  uint32_t free_;          // number of nodes that came back or were never taken
};

}  // namespace rnic::framing

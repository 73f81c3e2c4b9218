/// \file
/// Fixed array of list nodes with a free list; nodes name each other by index.
#pragma once

#include <cstdint>
#include <vector>

namespace rnic::mpa {

inline constexpr uint32_t kNone = UINT32_MAX;

/// T has a member `next` that the pool uses while the node is free. All memory is taken at
/// construction.
template <typename T>
class Pool {
 public:
  explicit Pool(uint32_t capacity) : nodes_(capacity), free_(capacity) {
    for (uint32_t i = capacity; i-- > 0;) {
      nodes_[i].next = head_;
      head_ = i;
    }
  }

  /// kNone when empty. The node's content is what its last user left.
  uint32_t take() {
    const uint32_t index = head_;
    if (index == kNone) return kNone;
    head_ = nodes_[index].next;
    --free_;
    return index;
  }
  void give(uint32_t index) {
    nodes_[index].next = head_;
    head_ = index;
    ++free_;
  }

  T& operator[](uint32_t index) { return nodes_[index]; }
  [[nodiscard]] uint32_t free() const { return free_; }

 private:
  std::vector<T> nodes_;
  uint32_t head_ = kNone;
  uint32_t free_;
};

}  // namespace rnic::mpa

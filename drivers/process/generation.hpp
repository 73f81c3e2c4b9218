/// \file
/// Which process this is, in a line of forks.
#pragma once

#include <atomic>
#include <cstdint>

namespace rnic::process {

/// Counts the forks that left something of the parent's behind in the child: a runtime that was
/// open, or an EAL. What was made under another number than now() belongs to the parent: its memory
/// may be shared, its descriptors are closed, its threads are not here.
class Generation {
 public:
  /// 0: nothing of a parent's is here.
  [[nodiscard]] static uint32_t now() { return number_.load(std::memory_order_relaxed); }

  /// While one exists, a child of this process abandons what there is. Any thread. In the child the
  /// parent's count for nothing.
  class Use {
   public:
    Use() { uses_.fetch_add(1); }
    ~Use() { uses_.fetch_sub(1); }
    Use(const Use&) = delete;
    Use& operator=(const Use&) = delete;
  };

  /// In a child, before anything else there: one thread.
  static void begin_in_child() noexcept {
    if (uses_.exchange(0) != 0) number_.fetch_add(1, std::memory_order_relaxed);
  }

 private:
  inline static std::atomic<uint32_t> number_{0};
  inline static std::atomic<uint32_t> uses_{0};
};

}  // namespace rnic::process

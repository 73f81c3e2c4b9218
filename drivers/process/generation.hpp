/// \file
/// Generation: tells a process from its parents in a line of forks.
#pragma once

#include <atomic>
#include <cstdint>

namespace rnic::process {

/// Counts the forks that left an open runtime or a started EAL of the parent behind in the child.
/// An object made under another number than now() belongs to the parent: its memory may be shared,
/// its descriptors are closed, its threads are not here.
class Generation {
 public:
  /// The number of this process; 0: it has nothing of a parent.
  [[nodiscard]] static uint32_t now() { return number_.load(std::memory_order_relaxed); }

  /// While a Use exists, a child of this process abandons the objects that it inherits. Any thread.
  /// In the child the parent's Uses do not count.
  class Use {
   public:
    Use() { uses_.fetch_add(1); }
    ~Use() { uses_.fetch_sub(1); }
    Use(const Use&) = delete;
    Use& operator=(const Use&) = delete;
  };

  /// Called in a child before anything else there, when it has one thread.
  static void begin_in_child() noexcept {
    if (uses_.exchange(0) != 0) number_.fetch_add(1, std::memory_order_relaxed);
  }

 private:
  inline static std::atomic<uint32_t> number_{0};
  inline static std::atomic<uint32_t> uses_{0};
};

}  // namespace rnic::process

/// \file
/// Doorbells: which of N queues has new work. Any thread rings, one worker answers.
#pragma once

#include <atomic>
#include <bit>
#include <cstdint>
#include <memory>

#include "base/check.hpp"

namespace rnic::base {

/// A bitmap with a summary word. What a thread wrote before ring(i) is visible to the worker inside
/// the callback of answer() for i. Up to 4096 doorbells.
class Doorbells {
 public:
  static constexpr uint32_t kMax = 64 * 64;

  explicit Doorbells(uint32_t count)
      : words_(std::make_unique<std::atomic<uint64_t>[]>((count + 63) / 64)) {
    RNIC_CHECK(count <= kMax);
  }

  /// Any thread. Two read-modify-writes: no look before, because a bell that was seen ringing may
  /// just be answered, and the worker might not see the new work then.
  void ring(uint32_t i) {
    words_[i / 64].fetch_or(1ull << (i % 64), std::memory_order_release);
    summary_.fetch_or(1ull << (i / 64), std::memory_order_release);
  }

  [[nodiscard]] bool ringing() const { return summary_.load(std::memory_order_relaxed) != 0; }

  /// The worker: calls f(i) for each ringing bell and silences it first.
  template <typename F>
  void answer(F&& f) {
    uint64_t groups = summary_.load(std::memory_order_relaxed);
    if (groups == 0) return;
    groups = summary_.exchange(0, std::memory_order_acquire);
    while (groups != 0) {
      const auto group = static_cast<uint32_t>(std::countr_zero(groups));
      groups &= groups - 1;
      uint64_t bells = words_[group].exchange(0, std::memory_order_acquire);
      while (bells != 0) {
        const auto bell = static_cast<uint32_t>(std::countr_zero(bells));
        bells &= bells - 1;
        f(group * 64 + bell);
      }
    }
  }

 private:
  std::atomic<uint64_t> summary_{0};  // bit g: words_[g] may be non-zero
  std::unique_ptr<std::atomic<uint64_t>[]> words_;
};

}  // namespace rnic::base

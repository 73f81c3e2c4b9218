/// \file
/// Doorbells: which of N queues has new work. Any thread rings, one worker answers.
#pragma once

#include <atomic>
#include <bit>
#include <cstdint>
#include <memory>

namespace rnic::base {

/// A bitmap with summary words, one for 4096 doorbells. What a thread wrote before ring(i) is
/// visible to the worker inside the callback of answer() for i.
class Doorbells {
 public:
  explicit Doorbells(uint32_t count)
      : summaries_count_((count + kPerSummary - 1) / kPerSummary),
        summaries_(std::make_unique<std::atomic<uint64_t>[]>(summaries_count_)),
        words_(std::make_unique<std::atomic<uint64_t>[]>((count + 63) / 64)) {}

  /// Any thread. Two read-modify-writes: no look before, because a bell that was seen ringing may
  /// just be answered, and the worker might not see the new work then.
  void ring(uint32_t i) {
    words_[i / 64].fetch_or(1ull << (i % 64), std::memory_order_release);
    summaries_[i / kPerSummary].fetch_or(1ull << (i / 64 % 64), std::memory_order_release);
  }

  [[nodiscard]] bool ringing() const {
    for (uint32_t s = 0; s < summaries_count_; ++s) {
      if (summaries_[s].load(std::memory_order_relaxed) != 0) return true;
    }
    return false;
  }

  /// The worker: calls f(i) for each ringing bell and silences it first.
  template <typename F>
  void answer(F&& f) {
    for (uint32_t s = 0; s < summaries_count_; ++s) answer_of(s, f);
  }

 private:
  static constexpr uint32_t kPerSummary = 64 * 64;

  template <typename F>
  void answer_of(uint32_t summary, F& f) {
    uint64_t groups = summaries_[summary].load(std::memory_order_relaxed);
    if (groups == 0) return;
    groups = summaries_[summary].exchange(0, std::memory_order_acquire);
    while (groups != 0) {
      const uint32_t group = summary * 64 + static_cast<uint32_t>(std::countr_zero(groups));
      groups &= groups - 1;
      uint64_t bells = words_[group].exchange(0, std::memory_order_acquire);
      while (bells != 0) {
        const auto bell = static_cast<uint32_t>(std::countr_zero(bells));
        bells &= bells - 1;
        f(group * 64 + bell);
      }
    }
  }

  uint32_t summaries_count_;
  // Bit g of summary s: words_[64 * s + g] may be non-zero.
  std::unique_ptr<std::atomic<uint64_t>[]> summaries_;
  std::unique_ptr<std::atomic<uint64_t>[]> words_;
};

}  // namespace rnic::base

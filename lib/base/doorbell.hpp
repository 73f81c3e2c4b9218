/// \file
/// Doorbells: which of N queues has new work. Any thread rings, one worker answers.
#pragma once

#include <array>
#include <atomic>
#include <bit>
#include <cstdint>
#include <memory>

#include "base/prefetch.hpp"

namespace rnic::base {

/// A bitmap with summary words, one for 4096 doorbells. What a thread wrote before ring(i) is
/// visible to the worker inside the callback of answer() for i.
class Doorbells {
 public:
  explicit Doorbells(uint32_t count)
      : blocks_count_((count + kPerBlock - 1) / kPerBlock),
        blocks_(std::make_unique<Block[]>(blocks_count_)) {}

  /// One of the doorbells, for who rings it often. The doorbells outlive it.
  class Bell {
   public:
    Bell(Doorbells& bells, uint32_t number)
        : word_(bells.blocks_[number / kPerBlock].words[number / 64 % 64]),
          summary_(bells.blocks_[number / kPerBlock].summary),
          bit_(1ull << (number % 64)),
          summary_bit_(1ull << (number / 64 % 64)) {}

    /// Any thread, before it writes what it is going to ring for: what ring() needs is fetched
    /// meanwhile.
    void expect() const { prefetch_for_write(&summary_); }
    /// Any thread. Two read-modify-writes: no look before, because a bell that was seen ringing may
    /// just be answered, and the worker might not see the new work then.
    void ring() const {
      word_.fetch_or(bit_, std::memory_order_release);
      summary_.fetch_or(summary_bit_, std::memory_order_release);
    }

   private:
    std::atomic<uint64_t>& word_;
    std::atomic<uint64_t>& summary_;
    const uint64_t bit_;
    const uint64_t summary_bit_;
  };

  /// Any thread: as Bell::ring().
  void ring(uint32_t i) { Bell(*this, i).ring(); }

  [[nodiscard]] bool ringing() const {
    for (uint32_t b = 0; b < blocks_count_; ++b) {
      if (blocks_[b].summary.load(std::memory_order_relaxed) != 0) return true;
    }
    return false;
  }

  /// The worker: calls f(i) for each ringing bell and silences it first.
  template <typename F>
  void answer(F&& f) {
    for (uint32_t b = 0; b < blocks_count_; ++b) answer_of(b, f);
  }

 private:
  static constexpr uint32_t kPerBlock = 64 * 64;

  /// The first words share the cache line of the summary: a device with few queues has all of its
  /// bells in one line.
  struct alignas(64) Block {
    std::atomic<uint64_t> summary{0};  // bit g: words[g] may be non-zero
    std::array<std::atomic<uint64_t>, 64> words{};
  };

  template <typename F>
  void answer_of(uint32_t number, F& f) {
    Block& block = blocks_[number];
    // The line comes here for writing at once: whoever rings next takes it away in any case.
    prefetch_for_write(&block);
    uint64_t words = block.summary.load(std::memory_order_relaxed);
    if (words == 0) return;
    words = block.summary.exchange(0, std::memory_order_acquire);
    while (words != 0) {
      const auto word = static_cast<uint32_t>(std::countr_zero(words));
      words &= words - 1;
      uint64_t bells = block.words[word].exchange(0, std::memory_order_acquire);
      while (bells != 0) {
        const auto bell = static_cast<uint32_t>(std::countr_zero(bells));
        bells &= bells - 1;
        f(number * kPerBlock + word * 64 + bell);
      }
    }
  }

  uint32_t blocks_count_;
  std::unique_ptr<Block[]> blocks_;
};

}  // namespace rnic::base

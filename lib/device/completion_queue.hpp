/// \file
/// Completion queue: one single-producer lane, filled by the device's worker.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <span>
#include <utility>

#include "base/spsc_ring.hpp"
#include "device/queue_listener.hpp"
#include "rnic/work.hpp"

namespace rnic::device {

class CompletionQueue {
 public:
  /// \param depth completions that fit; at least the sum of the work outstanding on it.
  explicit CompletionQueue(uint32_t depth) : ring_(depth) {}

  /// What a queue asks the machine for.
  [[nodiscard]] static uint64_t octets_for(uint64_t depth) {
    return base::SpscRing<Completion>::octets_for(depth);
  }

  /// Worker: false when full (overrun).
  bool push(const Completion& completion) {
    const bool fits = ring_.push(completion);
    if (listener_ != nullptr) {
      listener_->added(completion.solicited || completion.status != CompletionStatus::Success);
    }
    return fits;
  }
  /// Worker: who is told of each completion from now on.
  void set_listener(std::unique_ptr<QueueListener> listener) { listener_ = std::move(listener); }

  /// Application side, one thread at a time: oldest first. \return how many were written to `out`.
  uint32_t poll(std::span<Completion> out) {
    uint32_t n = 0;
    while (n < out.size() && ring_.pop(out[n])) ++n;
    if (overrun_told_.load(std::memory_order_relaxed)) {
      overrun_told_.store(false, std::memory_order_relaxed);
    }
    return n;
  }

  /// Worker: whether an overrun is news, which it is once until the application polls.
  bool tell_overrun() { return !overrun_told_.exchange(true, std::memory_order_relaxed); }

  /// Worker: nobody polls it any more; it goes with the last queue pair that completes here.
  void release() { released_ = true; }
  [[nodiscard]] bool is_released() const { return released_; }

  // Worker: how many queue pairs complete here.
  void add_user() { ++users_; }
  void drop_user() { --users_; }
  [[nodiscard]] uint32_t users() const { return users_; }

 private:
  base::SpscRing<Completion> ring_;
  std::atomic<bool> overrun_told_{false};
  uint32_t users_ = 0;
  bool released_ = false;
  std::unique_ptr<QueueListener> listener_;  // nullptr: nobody has asked for a descriptor
};

}  // namespace rnic::device

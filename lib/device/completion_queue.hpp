/// \file
/// Completion queue: one single-producer lane, filled by the device's worker.
#pragma once

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
  /// \param fits_all queues that could overrun it are refused
  CompletionQueue(uint32_t number, uint32_t depth, bool fits_all)
      : number_(number), fits_all_(fits_all), ring_(depth) {}

  [[nodiscard]] uint32_t number() const { return number_; }
  [[nodiscard]] bool fits_all() const { return fits_all_; }

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
    return n;
  }

  /// Completions that fit.
  [[nodiscard]] uint32_t depth() const { return static_cast<uint32_t>(ring_.capacity()); }
  /// Completions that nobody has polled.
  [[nodiscard]] uint32_t waiting() const { return static_cast<uint32_t>(ring_.size()); }

  // Worker.

  /// A completion was lost: the queue is in error until it is resized. \return that is news
  bool set_overrun() { return !std::exchange(overrun_, true); }
  [[nodiscard]] bool is_overrun() const { return overrun_; }
  /// Another depth, while the application's thread waits for the worker; the completions in it
  /// stay, and an error is over. False: there are more; nothing has changed then.
  bool resize(uint32_t depth) {
    if (depth < waiting()) return false;
    ring_.resize(depth);
    overrun_ = false;
    return true;
  }

  /// Worker: nobody polls it any more; it goes with the last queue pair that completes here.
  void release() { released_ = true; }
  [[nodiscard]] bool is_released() const { return released_; }

  // Worker: how many queue pairs complete here.
  void add_user() { ++users_; }
  void drop_user() { --users_; }
  [[nodiscard]] uint32_t users() const { return users_; }

 private:
  const uint32_t number_;
  const bool fits_all_;
  base::SpscRing<Completion> ring_;
  bool overrun_ = false;
  uint32_t users_ = 0;
  bool released_ = false;
  std::unique_ptr<QueueListener> listener_;  // nullptr: nobody has asked for a descriptor
};

}  // namespace rnic::device

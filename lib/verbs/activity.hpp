/// \file
/// Activity: lets threads of the application wait until workers have done something.
#pragma once

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <mutex>

namespace rnic::verbs {

/// Counts the turns in which a worker served something while somebody waited. A thread that waits
/// reads the count first, then checks its condition, and sleeps until the count has changed.
class Activity {
 public:
  /// Called by a worker after such a turn. Costs a fence and a load while nobody waits.
  void happened() {
    std::atomic_thread_fence(std::memory_order_seq_cst);
    if (waiters_.load(std::memory_order_relaxed) == 0) return;
    {
      const std::lock_guard lock(mutex_);
      ++turns_;
    }
    changed_.notify_all();
  }

  /// Marks that somebody waits, for as long as it lives. Any thread.
  class Waiter {
   public:
    explicit Waiter(Activity& activity) : activity_(activity) {
      activity_.waiters_.fetch_add(1);
      std::atomic_thread_fence(std::memory_order_seq_cst);
    }
    ~Waiter() { activity_.waiters_.fetch_sub(1); }
    Waiter(const Waiter&) = delete;
    Waiter& operator=(const Waiter&) = delete;

    [[nodiscard]] uint64_t turns() const {
      const std::lock_guard lock(activity_.mutex_);
      return activity_.turns_;
    }
    /// Sleeps until turns() differs from `seen`, at most for `longest`.
    void sleep(uint64_t seen, std::chrono::nanoseconds longest) const {
      std::unique_lock lock(activity_.mutex_);
      activity_.changed_.wait_for(lock, longest, [&] { return activity_.turns_ != seen; });
    }

   private:
    Activity& activity_;
  };

 private:
  std::atomic<uint32_t> waiters_{0};
  std::mutex mutex_;
  std::condition_variable changed_;
  uint64_t turns_ = 0;  // guarded by mutex_
};

}  // namespace rnic::verbs

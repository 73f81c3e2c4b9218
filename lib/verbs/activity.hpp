/// \file
/// Activity: how threads of the application wait for what workers do.
#pragma once

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <mutex>

namespace rnic::verbs {

/// Counts the turns in which a worker served something while somebody waited. Whoever waits reads
/// the count first, then looks whether what it waits for has come, and sleeps until the count is
/// another one.
class Activity {
 public:
  /// A worker, behind such a turn. Costs a fence and a look while nobody waits.
  void happened() {
    std::atomic_thread_fence(std::memory_order_seq_cst);
    if (waiters_.load(std::memory_order_relaxed) == 0) return;
    {
      const std::lock_guard lock(mutex_);
      ++turns_;
    }
    changed_.notify_all();
  }

  /// Somebody waits while it lives. Any thread.
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
    /// Until turns() is not `seen` any more, `longest` at the longest.
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

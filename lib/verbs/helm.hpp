/// \file
/// Helm: which thread drives the devices of a worker.
#pragma once

#include <atomic>
#include <mutex>

namespace rnic::verbs {

/// One thread at a time drives: the worker, from when it takes the helm to when it sleeps, or
/// meanwhile a thread of the application, for one turn. Nobody but the worker waits for it.
/// \tparam Mutex std::mutex, or that of a model \tparam Flag std::atomic<bool>, or that of a model
template <typename Mutex, typename Flag>
class HelmOver {
 public:
  /// The worker wants it, and waits for the turn of another thread.
  void take() {
    workers_.store(true, std::memory_order_relaxed);
    mutex_.lock();
  }
  /// The worker is about to sleep.
  void leave() {
    workers_.store(false, std::memory_order_relaxed);
    mutex_.unlock();
  }
  /// A guess, for any thread. \return whether the worker neither drives nor wants to
  [[nodiscard]] bool is_left() const { return !workers_.load(std::memory_order_relaxed); }
  /// Any other thread. \return owns nothing where somebody drives already, or the worker wants to
  [[nodiscard]] std::unique_lock<Mutex> try_take() {
    if (workers_.load(std::memory_order_relaxed)) return {};
    return std::unique_lock(mutex_, std::try_to_lock);
  }

 private:
  Mutex mutex_;
  Flag workers_{true};  // so that others neither outrun the worker nor, while it drives, write to
                        // the lock
};

using Helm = HelmOver<std::mutex, std::atomic<bool>>;

}  // namespace rnic::verbs

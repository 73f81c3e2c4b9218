/// \file
/// QueueLock: keeps apart the threads of an application that share one end of a queue.
#pragma once

#include <memory>
#include <mutex>
#include <utility>

namespace rnic::verbs {

/// The lock of one queue that several threads use (QueuePairOptions::several_threads and its like).
///
/// The rings below have one thread at each end. The lock makes one of all threads of the
/// application: each call holds it from its first look at the ring to its last. No worker ever
/// takes it, so the application's threads wait for each other alone, and a device for none of them.
/// A child of a fork must not ask for it, because a thread of the parent may have held it.
class alignas(64) QueueLock {
 public:
  /// \return nullptr for a queue that one thread at a time uses: it needs no lock
  static std::unique_ptr<QueueLock> make_if(bool several_threads) {
    return several_threads ? std::make_unique<QueueLock>() : nullptr;
  }

  /// \return what `work` returns, which is carried out while no other thread holds the lock
  template <typename F>
  auto hold(F&& work) {
    const std::lock_guard held(mutex_);
    return std::forward<F>(work)();
  }

 private:
  std::mutex mutex_;
};

/// Carries `work` out, under the lock if there is one. A queue without one pays a branch.
/// \tparam Lock QueueLock, or that of a model
template <typename Lock, typename F>
auto alone(Lock* lock, F&& work) {
  if (lock == nullptr) [[likely]] return std::forward<F>(work)();
  return lock->hold(std::forward<F>(work));
}

}  // namespace rnic::verbs

/// \file
/// How a handle posts to a queue: under the queue's lock if it has one, and with the device woken.
#pragma once

#include "device/queue_pair.hpp"
#include "verbs/queue_lock.hpp"
#include "verbs/runtime.hpp"

namespace rnic::verbs {

[[nodiscard]] inline bool has_queued(device::PostResult result) {
  return result == device::PostResult::Ok;
}
[[nodiscard]] inline bool has_queued(const device::QueuePair::ListResult& list) {
  return list.taken != 0;
}

/// Has `post` queue work, and wakes the thread that drives the device if it has. \param lock
/// nullptr: no other thread posts to the queue. \return what `post` returns
template <typename F>
auto post_and_wake(DeviceRuntime& device, QueueLock* lock, F&& post) {
  if (lock == nullptr) [[likely]] {
    const auto result = post();
    if (has_queued(result)) device.wake();
    return result;
  }
  const auto result = lock->hold(post);
  if (has_queued(result)) device.wake_from_any_thread();
  return result;
}

}  // namespace rnic::verbs

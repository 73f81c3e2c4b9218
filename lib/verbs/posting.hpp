/// \file
/// How a handle posts to a queue: under the queue's lock if it has one, and so that the device is
/// driven.
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

/// \return whether a receive that is posted to the queue pair completes, if ever, by what the peer
/// sends later. Inline, for the thread that drives the device.
[[nodiscard]] inline bool spares_receives(const device::QueuePair& qp) {
  const QueuePairState state = qp.state();
  return (state == QueuePairState::Idle || state == QueuePairState::Rts) && !qp.waits_for_receive();
}

/// Has `post` queue receives, and tells the thread that drives the device if it has. \param lock
/// nullptr: no other thread posts to the queue \param qp whose queue it is; nullptr: several share
/// it \return what `post` returns
template <typename F>
auto post_receives(DeviceRuntime& device, const device::QueuePair* qp, QueueLock* lock, F&& post) {
  const auto result = alone(lock, post);
  if (!has_queued(result)) return result;
  const bool alone_here = lock == nullptr && device.worker == nullptr;
  const bool spare = alone_here && qp != nullptr && spares_receives(*qp);
  device.posted(spare ? Posted::SpareReceives : Posted::Receives, lock != nullptr);
  return result;
}

/// As post_receives(), for work of the send queue of `qp`.
template <typename F>
auto post_sends(DeviceRuntime& device, const device::QueuePair& qp, QueueLock* lock, F&& post) {
  bool first = false;
  const auto result = alone(lock, [&] {
    first = device.may_serve_post() && qp.is_send_idle();
    return post();
  });
  if (has_queued(result)) {
    device.posted(first ? Posted::FirstSends : Posted::Sends, lock != nullptr);
  }
  return result;
}

}  // namespace rnic::verbs

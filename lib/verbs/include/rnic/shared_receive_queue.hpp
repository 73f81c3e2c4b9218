/// \file
/// SharedReceiveQueue: receives that several queue pairs take from (RFC 5042 section 6.4.3.1).
#pragma once

#include <cstdint>
#include <memory>

#include "rnic/error.hpp"
#include "rnic/queue_info.hpp"
#include "rnic/work.hpp"

namespace rnic {

namespace verbs {
class QueueLock;
struct DeviceRuntime;
}  // namespace verbs
namespace device {
class SharedReceiveQueue;
}  // namespace device

struct SharedReceiveQueueOptions {
  uint32_t depth = 128;         ///< receives that are posted or in progress at once
  uint32_t max_sges = kMaxSge;  ///< pieces of memory that a receive may have
  /// The application's own pointer: events that name the queue carry it. The library never
  /// dereferences it.
  void* context = nullptr;
  /// Any number of threads may post to the queue at once, inline, too; in a threaded context they
  /// may make its other calls as well. The receives of one thread keep their order. A call waits
  /// while another one posts or resizes. False: one thread at a time, unless the key
  /// device.several_threads says otherwise.
  bool several_threads = false;
};

/// Receives for the queue pairs that are made with QueuePairOptions::srq. A queue pair takes the
/// oldest receive when a message of its peer begins; the completion comes to that queue pair's
/// receive completion queue and names the queue pair. One thread at a time makes calls, also those
/// that the worker carries out (all but post_receive()), or any number with
/// SharedReceiveQueueOptions::several_threads.
///
/// If a message finds no receive its queue pair ends by a Terminate, or waits
/// (QueuePairOptions::receive_wait). Receives that a queue pair has taken when it is destroyed do
/// not complete, and do not return to the queue.
class SharedReceiveQueue {
 public:
  SharedReceiveQueue();
  SharedReceiveQueue(SharedReceiveQueue&& other) noexcept;
  SharedReceiveQueue& operator=(SharedReceiveQueue&& other) noexcept;
  /// Queue pairs that take from the queue go on with the receives that are posted.
  ~SharedReceiveQueue();
  /// Destroys the queue and leaves the handle empty. WrongState while queue pairs take from it:
  /// then nothing has changed. Receives that are posted are given up without a completion.
  Status destroy();

  /// The number that names the queue in events; none before it had the same one. 0: the handle is
  /// empty.
  [[nodiscard]] uint32_t number() const;

  /// Posts a receive. ResourceExhausted: the queue is full. InvalidArgument: the request has more
  /// pieces than `max_sges`.
  Status post_receive(const ReceiveRequest& request);

  /// Arms a limit: event::SrqLimitReached follows as soon as fewer than `posted` receives are left,
  /// at once if that is so now. The event comes once, then the limit has to be armed again. 0
  /// disarms it.
  Status arm_limit(uint32_t posted);
  /// Arms a high-water mark: event::SrqHighWater follows for each queue pair that has more than
  /// `in_progress` receives begun and not delivered, once per queue pair until the next call. 0
  /// disarms it.
  Status arm_high_water(uint32_t in_progress);
  /// Gives the queue another depth; posted receives stay. WrongState, and nothing changes, if more
  /// than `depth` receives are posted or in progress.
  Status resize(uint32_t depth);
  /// The state of the queue, and how much each queue pair has taken.
  Result<SrqInfo> info() const;

 private:
  friend class ProtectionDomain;
  void swap(SharedReceiveQueue& other) noexcept;

  std::shared_ptr<verbs::DeviceRuntime> device_;
  device::SharedReceiveQueue* srq_ = nullptr;
  std::unique_ptr<verbs::QueueLock> lock_;  // of several threads; nullptr: one at a time
};

}  // namespace rnic

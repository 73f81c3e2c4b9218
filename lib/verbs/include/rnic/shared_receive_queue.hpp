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
struct DeviceRuntime;
}  // namespace verbs
namespace device {
class SharedReceiveQueue;
}  // namespace device

struct SharedReceiveQueueOptions {
  uint32_t depth = 128;         ///< receives that are posted or in progress at once
  uint32_t max_sges = kMaxSge;  ///< pieces of memory that a receive may have
  /// The application's own: events that name the queue bear it. Nobody looks at what it points to.
  void* context = nullptr;
};

/// Receives for the queue pairs that are made with QueuePairOptions::srq. Each takes the oldest
/// when a message of its peer begins; the completion comes to the receive queue of that queue pair
/// and names it. One thread at a time; the calls that the worker carries out (all but
/// post_receive()) belong to the thread that posts.
///
/// A queue pair whose peer's message finds none is ended by a Terminate, or waits
/// (QueuePairOptions). What a queue pair has taken when it is destroyed is not completed; it is not
/// posted any more.
class SharedReceiveQueue {
 public:
  SharedReceiveQueue() = default;
  SharedReceiveQueue(SharedReceiveQueue&& other) noexcept;
  SharedReceiveQueue& operator=(SharedReceiveQueue&& other) noexcept;
  /// Queue pairs that take from it go on with what is posted.
  ~SharedReceiveQueue();
  /// The same as a call, which leaves the handle empty. WrongState while queue pairs take from it:
  /// then nothing has changed. Receives that are posted are given up without a completion.
  Status destroy();

  /// Names it in events; 0: the handle is empty.
  [[nodiscard]] uint32_t number() const;

  /// ResourceExhausted when the queue is full, InvalidArgument for more pieces than `max_sges`.
  Status post_receive(const ReceiveRequest& request);

  /// event::SrqLimitReached follows once fewer than `posted` receives are left, at once where they
  /// are now. It comes once, then the limit has to be armed again. 0: it does not come.
  Status arm_limit(uint32_t posted);
  /// event::SrqHighWater follows for each queue pair that has more than `in_progress` receives
  /// begun and not delivered: once a queue pair, until this is called again. 0: it does not come.
  Status arm_high_water(uint32_t in_progress);
  /// Another depth; what is posted stays. WrongState, and nothing changes, where more than `depth`
  /// receives are posted or in progress.
  Status resize(uint32_t depth);
  /// What it has, and who has taken how much.
  Result<SrqInfo> info() const;

 private:
  friend class ProtectionDomain;
  void swap(SharedReceiveQueue& other) noexcept;

  std::shared_ptr<verbs::DeviceRuntime> device_;
  device::SharedReceiveQueue* srq_ = nullptr;
};

}  // namespace rnic

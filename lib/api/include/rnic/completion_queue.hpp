/// \file
/// How a completion queue is made, and how it tells of completions.
#pragma once

#include <chrono>
#include <cstdint>

namespace rnic {

/// How many completions one wake-up may stand for. The descriptor of an armed queue becomes
/// readable once `count` of the completions that it is armed for have been added, or `period` after
/// the first of them, whichever comes first. It becomes readable at once if a completion is lost.
struct NotifyModeration {
  uint32_t count = 1;  ///< 1: each completion tells of itself; at most kMaxNotifyCount
  /// Measured by the device's clock, in steps of 33 us. It must be above 0 if `count` is above 1,
  /// and at most kMaxNotifyPeriod.
  std::chrono::nanoseconds period{0};
};
inline constexpr uint32_t kMaxNotifyCount = 65535;
inline constexpr std::chrono::seconds kMaxNotifyPeriod{1};

struct CompletionQueueOptions {
  /// Refuse queue pairs, and depths of shared receive queues, with which more completions could
  /// come at once than the queue holds (RFC 5042 section 6.4.3.2). False: it may overrun, see
  /// event::CompletionOverrun.
  bool fits_all = false;
  /// The application's own pointer: events that name the queue carry it. The library never
  /// dereferences it.
  void* context = nullptr;
  /// Have Completion::time tell when each completion was added.
  bool timestamps = false;
  NotifyModeration moderation{};
  /// Any number of threads may poll the queue at once, and in a threaded context arm() and resize()
  /// it and call fd() as well. Each completion goes to one of them, and one call of poll() gets
  /// completions that follow each other. A call waits while another one is under way. False: one
  /// thread at a time, unless the key device.several_threads says otherwise.
  bool several_threads = false;
};

}  // namespace rnic

/// \file
/// How a completion queue is made, and how it tells of completions.
#pragma once

#include <chrono>
#include <cstdint>

namespace rnic {

/// How many completions one wake-up may stand for. The descriptor of a queue that is armed becomes
/// readable once `count` of the completions that it is armed for have been added, or `period` after
/// the first of them, whichever comes first. Where a completion is lost it becomes so at once.
struct NotifyModeration {
  uint32_t count = 1;  ///< 1: each completion tells of itself; at most kMaxNotifyCount
  /// On the device's clock, which looks at it every 33 us. Above 0 where `count` is above 1; at
  /// most kMaxNotifyPeriod.
  std::chrono::nanoseconds period{0};
};
inline constexpr uint32_t kMaxNotifyCount = 65535;
inline constexpr std::chrono::seconds kMaxNotifyPeriod{1};

struct CompletionQueueOptions {
  /// Queue pairs, and depths of shared receive queues, with which more completions could come at
  /// once than it holds are refused (RFC 5042 section 6.4.3.2). Otherwise it may overrun:
  /// event::CompletionOverrun.
  bool fits_all = false;
  /// The application's own: events that name the queue bear it. Nobody looks at what it points to.
  void* context = nullptr;
  /// Completion::time tells when each was added.
  bool timestamps = false;
  NotifyModeration moderation{};
};

}  // namespace rnic

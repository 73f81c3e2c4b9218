/// \file
/// ReceiveWaits: until when messages may wait for a receive.
#pragma once

#include <algorithm>

#include "base/time.hpp"
#include "base/timer_wheel.hpp"

namespace rnic::device {

/// The worker's. A node belongs to a queue pair, and is its owner's place in the wheel.
class ReceiveWaits {
 public:
  explicit ReceiveWaits(base::Now now) : timers_(now) {}

  /// A message of that queue pair may wait until then.
  void begin(base::TimerNode& node, base::Now deadline) {
    timers_.arm(node, std::min(deadline, base::kNever - base::Duration(1)));  // any() tells of it
  }
  /// None does any more. Nothing where none did.
  void end(base::TimerNode& node) { timers_.cancel(node); }
  /// A message may be waiting.
  [[nodiscard]] bool any() const { return timers_.armed() != 0; }
  [[nodiscard]] base::Now next_deadline() const { return timers_.next_deadline(); }
  /// Resumes the queue pairs whose messages have waited for as long as they may.
  void on_timers(base::Now now);

 private:
  base::TimerWheel timers_;
};

}  // namespace rnic::device

/// \file
/// ReceiveWaits: the deadlines of messages that wait for a receive.
#pragma once

#include <algorithm>

#include "base/time.hpp"
#include "base/timer_wheel.hpp"

namespace rnic::device {

/// Belongs to the worker. Each queue pair has a node, its place in the timer wheel.
class ReceiveWaits {
 public:
  explicit ReceiveWaits(base::Now now) : timers_(now) {}

  /// A message of the node's queue pair waits, until `deadline` at most.
  void begin(base::TimerNode& node, base::Now deadline) {
    // A deadline of kNever would not be armed, and any() would not count it.
    timers_.arm(node, std::min(deadline, base::kNever - base::Duration(1)));
  }
  /// No message of the node's queue pair waits any more. Does nothing if none did.
  void end(base::TimerNode& node) { timers_.cancel(node); }
  /// \return whether a message may be waiting
  [[nodiscard]] bool any() const { return timers_.armed() != 0; }
  [[nodiscard]] base::Now next_deadline() const { return timers_.next_deadline(); }
  /// Resumes the queue pairs whose messages have waited for as long as they may.
  void on_timers(base::Now now);

 private:
  base::TimerWheel timers_;
};

}  // namespace rnic::device

/// \file
/// StalledResponders: the times at which queue pairs answer requests that a planned fault delays.
#pragma once

#include <cstdint>
#include <string>

#include "base/time.hpp"
#include "base/timer_wheel.hpp"

namespace rnic::device {

/// Belongs to the worker. Each queue pair has a node, its place in the timer wheel.
class StalledResponders {
 public:
  /// \param device its name, which outlives this
  StalledResponders(const std::string& device, base::Now now) : device_(device), timers_(now) {}

  /// The oldest request that the node's queue pair has not answered waits until `until`.
  /// \param qp its number, for the log
  void begin(base::TimerNode& node, base::Now until, uint32_t qp);
  void end(base::TimerNode& node) { timers_.cancel(node); }
  [[nodiscard]] base::Now next_deadline() const { return timers_.next_deadline(); }
  /// Has the queue pairs answer whose time has come.
  void on_timers(base::Now now);

 private:
  const std::string& device_;
  base::TimerWheel timers_;
};

}  // namespace rnic::device

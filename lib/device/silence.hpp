/// \file
/// Silence: the time since which a connection has made no progress (limits.silence), and when it is
/// looked at next.
#pragma once

#include <cstdint>
#include <utility>

#include "base/time.hpp"
#include "base/timer_wheel.hpp"

namespace rnic::device {

class Silence {
 public:
  /// How far a connection has come.
  struct Progress {
    uint64_t arrived = 0;  ///< octets received from the peer
    uint32_t sends = 0;    ///< work requests of ours that have completed
    friend bool operator==(const Progress&, const Progress&) = default;
  };

  /// Stores the present progress. \return whether it has changed since the last look
  bool look(const Progress& progress) { return progress != std::exchange(progress_, progress); }
  void set_since(base::Now when) { since_ = when; }
  [[nodiscard]] base::Now since() const { return since_; }

  /// \param owner what the timer's wheel names when it fires
  void set_owner(void* owner) { look_timer_.owner = owner; }
  void arm(base::TimerWheel& wheel, base::Now at) { wheel.arm(look_timer_, at); }
  void cancel(base::TimerWheel& wheel) { wheel.cancel(look_timer_); }

 private:
  Progress progress_;
  base::Now since_{};
  base::TimerNode look_timer_;
};

}  // namespace rnic::device

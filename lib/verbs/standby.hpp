/// \file
/// Standby: when a worker leaves its devices to the threads of the application.
#pragma once

#include <algorithm>
#include <cstdint>

#include "base/time.hpp"

namespace rnic::verbs {

/// A thread that polls drives the devices while the worker sleeps, and serves what comes to their
/// ports before the worker is awake. A worker that is woken by a port therefore pauses as long as
/// such threads go on: for longer and longer, since all that it risks is the time between the last
/// poll and the end of a pause. Where something lay there for that time, because a thread polled
/// and then waited in its own way, the worker drives itself for the next while.
///
/// Belongs to the worker's thread. Times are the worker's clock.
class Standby {
 public:
  /// A thread that polls does so more often.
  static constexpr base::Duration kRecent = std::chrono::microseconds(50);
  static constexpr base::Duration kFirst = std::chrono::microseconds(50);
  static constexpr base::Duration kLongest = std::chrono::milliseconds(1);
  /// Wake-ups without a pause behind a pause that was a mistake, and behind one of many.
  static constexpr uint32_t kFewest = 16;
  static constexpr uint32_t kMost = 1024;

  /// A port has woken the worker, or its pause is over, at `now`.
  /// \param driven_at the latest turn of another thread
  /// \return how long to pause; 0: the worker drives
  [[nodiscard]] base::Duration next(base::Now now, base::Now driven_at) {
    if (now - driven_at > kRecent) return base::Duration(0);
    if (without_ != 0) {
      --without_;
      return base::Duration(0);
    }
    pause_ = std::min(kLongest, pause_ == base::Duration(0) ? kFirst : 2 * pause_);
    return pause_;
  }
  /// The worker was called for: there is more to do than the other threads can, or they sleep.
  void called() { pause_ = base::Duration(0); }
  /// The worker has done a turn. \param found whether there was something to serve
  void drove(bool found) {
    if (pause_ == base::Duration(0)) return;
    pause_ = base::Duration(0);
    mistakes_ = found ? std::min(kMost, std::max(kFewest, 2 * mistakes_)) : mistakes_ / 2;
    if (found) without_ = mistakes_;
  }

 private:
  base::Duration pause_{0};    // the latest, until the worker drives
  uint32_t mistakes_ = 0;      // wake-ups without a pause behind the latest mistake
  uint32_t without_ = 0;       // wake-ups without a pause that are left
};

}  // namespace rnic::verbs

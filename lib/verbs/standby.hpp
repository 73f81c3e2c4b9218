/// \file
/// Standby: when a worker leaves its devices to the threads of the application.
#pragma once

#include <algorithm>
#include <cstdint>
#include <utility>

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
  static constexpr base::Duration kRecent = std::chrono::microseconds(500);
  static constexpr base::Duration kFirst = std::chrono::microseconds(50);
  static constexpr base::Duration kLongest = std::chrono::milliseconds(1);
  /// Wake-ups without a pause behind a pause that was a mistake, and behind one of many.
  static constexpr uint32_t kFewest = 16;
  static constexpr uint32_t kMost = 1024;
  /// Leaving the devices to a thread for less was not worth the two changes of threads.
  static constexpr base::Duration kWorthIt = std::chrono::microseconds(200);

  /// A port has woken the worker, or its pause is over, at `now`.
  /// \param driven_at the latest turn of another thread
  /// \return how long to pause; 0: the worker drives
  [[nodiscard]] base::Duration next(base::Now now, base::Now driven_at) {
    if (now - driven_at > kRecent) return base::Duration(0);
    if (without_ != 0) {
      --without_;
      was_spared_ = true;
      return base::Duration(0);
    }
    pause_ = std::min(kLongest, pause_ == base::Duration(0) ? kFirst : 2 * pause_);
    return pause_;
  }
  /// The worker drives, at `now`, and others look for work in vain meanwhile. One that goes on so
  /// has nothing else to do: the devices are left to it, and next() begins at once.
  /// \param looks how many times they have looked
  [[nodiscard]] bool gives_way(base::Now now, uint32_t looks) {
    if (looks < patience_) return false;
    gave_way_at_ = now;
    without_ = 0;
    return true;
  }
  /// The worker drives again, at `now`, behind a time that gives_way() has begun.
  void came_back(base::Now now) {
    patience_ = now - gave_way_at_ < kWorthIt ? std::min(kMost, 2 * patience_)
                                              : std::max(kFewest, patience_ / 2);
  }
  /// The worker was called for: there is more to do than the other threads can, or they sleep.
  void called() { pause_ = base::Duration(0); }
  /// The worker has done a turn. \param found whether there was something to serve
  void drove(bool found) {
    // The thread was faster than the worker: it polls, and has not waited in its own way.
    if (std::exchange(was_spared_, false) && !found) without_ /= 2;
    if (pause_ == base::Duration(0)) return;
    pause_ = base::Duration(0);
    mistakes_ = found ? std::min(kMost, std::max(kFewest, 2 * mistakes_)) : mistakes_ / 2;
    if (found) without_ = mistakes_;
  }

 private:
  base::Duration pause_{0};    // the latest, until the worker drives
  uint32_t mistakes_ = 0;      // wake-ups without a pause behind the latest mistake
  uint32_t without_ = 0;       // wake-ups without a pause that are left
  bool was_spared_ = false;    // the latest wake-up was one of them
  base::Now gave_way_at_{};
  uint32_t patience_ = kFewest;  // looks in vain of others that the worker drives on behind
};

}  // namespace rnic::verbs

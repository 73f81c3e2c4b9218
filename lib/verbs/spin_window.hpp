/// \file
/// SpinWindow: how long a worker without work looks for some before it sleeps.
#pragma once

#include <algorithm>
#include <cstdint>

#include "base/time.hpp"

namespace rnic::verbs {

/// To fall asleep and to be woken costs some microseconds, which delay the work that comes. A
/// worker therefore looks for work for a while first: longer where its sleeps turn out so short
/// that looking would have met their end, shorter where it looked in vain. A worker that loses its
/// core while it looks, or has to wait for one when it is woken, shares the cores with more threads
/// than there are cores: the time that it looks is taken from its share, and missing when work
/// comes. It sleeps at once for the next while.
///
/// Belongs to the worker's thread. Times are the worker's clock.
class SpinWindow {
 public:
  /// More is never worth it: a sleep that lasts longer costs little beside its length.
  static constexpr base::Duration kLongest = std::chrono::microseconds(200);
  static constexpr base::Duration kFirst = std::chrono::microseconds(50);
  static constexpr base::Duration kShortest = std::chrono::microseconds(5);
  /// No turn takes as long: between two looks so far apart another thread had the core.
  static constexpr base::Duration kCoreLost = std::chrono::microseconds(500);
  /// Sleeps without looking first, once the core was lost.
  static constexpr uint32_t kSleepsAtOnce = 1024;

  /// \param longest the most that the window grows to
  explicit SpinWindow(base::Duration longest)
      : longest_(longest), window_(std::min(kFirst, longest)) {}

  /// A turn served something.
  void worked() { idle_since_ = base::kNever; }
  /// A turn at `now` served nothing. \return whether to look again rather than to sleep
  [[nodiscard]] bool looks_again(base::Now now) {
    if (idle_since_ == base::kNever) {
      idle_since_ = now;
    } else if (now - looked_at_ >= kCoreLost) {
      core_lost();
    }
    looked_at_ = now;
    return at_once_ == 0 && now - idle_since_ < window_;
  }
  /// The worker has slept for `length`, and begins to look anew.
  void slept(base::Duration length) {
    idle_since_ = base::kNever;
    if (at_once_ != 0) {
      --at_once_;
    } else if (length < kLongest) {
      window_ = std::min(longest_, 2 * window_);
    } else {
      window_ = std::max(std::min(kShortest, longest_), window_ / 2);
    }
  }

  /// The worker had to wait for its core.
  void core_lost() { at_once_ = kSleepsAtOnce; }

  [[nodiscard]] base::Duration window() const { return window_; }

 private:
  const base::Duration longest_;
  base::Duration window_;                 // at most longest_
  base::Now idle_since_ = base::kNever;   // the first look since the latest work or sleep
  base::Now looked_at_{};                 // the latest look
  uint32_t at_once_ = 0;                  // sleeps that are left without looking first
};

}  // namespace rnic::verbs

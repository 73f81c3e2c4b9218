/// \file
/// SpinWindow: how long a thread without work looks for some before it sleeps.
#pragma once

#include <algorithm>
#include <cstdint>

#include "base/time.hpp"

namespace rnic::verbs {

/// To fall asleep and to be woken costs some microseconds, which delay the work that comes. A
/// thread that drives devices therefore looks for work for a while first: longer where its sleeps
/// turn out so short that looking would have met their end, shorter where it looked in vain. It
/// sleeps at once for the next while where looking does harm:
/// - a thread that loses its core while it looks, or has to wait for one when it is woken, shares
///   the cores with more threads than there are cores: the time that it looks is taken from its
///   share, and missing when work comes;
/// - a thread that looks for the longest time in vain, and is woken as soon as it sleeps, time and
///   again, has the core that the one needs for whom it waits.
///
/// Belongs to that thread. Times are its clock.
class SpinWindow {
 public:
  /// More is never worth it: a sleep that lasts longer costs little beside its length.
  static constexpr base::Duration kLongest = std::chrono::microseconds(200);
  static constexpr base::Duration kFirst = std::chrono::microseconds(50);
  static constexpr base::Duration kShortest = std::chrono::microseconds(5);
  /// No turn takes as long: between two looks so far apart another thread had the core.
  static constexpr base::Duration kCoreLost = std::chrono::microseconds(500);
  /// A sleep that is so short began when the one could run for whom the thread waits.
  static constexpr base::Duration kShortSleep = std::chrono::microseconds(50);
  /// So many of them in a row are no chance.
  static constexpr uint32_t kNoChance = 3;
  /// Sleeps without looking first, once looking has done harm.
  static constexpr uint32_t kSleepsAtOnce = 1024;

  /// \param longest the most that the window grows to
  explicit SpinWindow(base::Duration longest)
      : longest_(longest), window_(std::min(kFirst, longest)) {}

  /// A turn served something.
  void worked() {
    if (idle_since_ != base::kNever) short_sleeps_ = 0;  // it was found by looking
    idle_since_ = base::kNever;
  }
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
  /// The thread has slept for `length`, and begins to look anew.
  void slept(base::Duration length) {
    idle_since_ = base::kNever;
    if (at_once_ != 0) {
      --at_once_;
      return;
    }
    short_sleeps_ = length < kShortSleep && window_ == longest_ ? short_sleeps_ + 1 : 0;
    window_ = length < kLongest ? std::min(longest_, 2 * window_)
                                : std::max(std::min(kShortest, longest_), window_ / 2);
    if (short_sleeps_ == kNoChance) sleep_at_once();
  }

  /// \return whether looking is of no use for now
  [[nodiscard]] bool sleeps_at_once() const { return at_once_ != 0; }

  /// The thread had to wait for its core.
  void core_lost() { sleep_at_once(); }

  [[nodiscard]] base::Duration window() const { return window_; }

 private:
  void sleep_at_once() {
    at_once_ = kSleepsAtOnce;
    short_sleeps_ = 0;
  }

  base::Duration longest_;
  base::Duration window_;                // at most longest_
  base::Now idle_since_ = base::kNever;  // the first look since the latest work or sleep
  base::Now looked_at_{};                // the latest look
  uint32_t short_sleeps_ = 0;            // in a row, each behind the longest look in vain
  uint32_t at_once_ = 0;                 // sleeps that are left without looking first
};

}  // namespace rnic::verbs

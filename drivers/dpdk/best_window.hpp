/// \file
/// The rule of windows, by which a stack's goodput and rate and those of its floor are measured: in
/// a run that moves without a pause, the fastest piece of 0.3 to 1 ms.
///
/// A machine that others share takes a core away for milliseconds, so that means say more about the
/// neighbours than about the program; the best window says what the program does while it runs.
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>

#include "base/time.hpp"

namespace rnic::dpdk {

/// Fed with counts of what was begun and what was done. What a window moved is what was begun in it
/// or what was done in it, whichever is less: so a window gains nothing from what was on its way
/// before, and has as much on its way at its end as at its begin.
class BestWindow {
 public:
  static constexpr base::Duration kShortest = std::chrono::microseconds(300);
  static constexpr base::Duration kLongest = std::chrono::milliseconds(1);

  /// \param least how many a window contains at least: what is done comes in lumps, and a window of
  /// few of them would choose its ends among them. A window of not twice as many may be longer than
  /// kLongest.
  explicit BestWindow(uint64_t least = 1) : least_(std::max<uint64_t>(least, 1)) {}

  /// Another run begins: no window reaches from before to behind.
  void begin_run() { begin_ = end_ = 0; }

  /// Both counts go on over the run.
  void sample(base::Now now, uint64_t begun, uint64_t done) {
    const Sample here{now, begun, done};
    while (begin_ + 1 < end_ && enough(at(begin_ + 1), here)) ++begin_;
    if (begin_ != end_) judge(at(begin_), here);
    if (end_ - begin_ == kSamples) return;  // so many in so short a time: this one is left out
    at(end_++) = here;
  }

  /// Done in a second, in the best window; 0: there was none.
  [[nodiscard]] double per_second() const { return best_; }
  [[nodiscard]] uint64_t windows() const { return windows_; }

 private:
  static constexpr uint64_t kSamples = 4096;
  struct Sample {
    base::Now time{};
    uint64_t begun = 0;
    uint64_t done = 0;
  };

  [[nodiscard]] static uint64_t moved(const Sample& from, const Sample& to) {
    return std::min(to.begun - from.begun, to.done - from.done);
  }
  [[nodiscard]] bool enough(const Sample& from, const Sample& to) const {
    return to.time - from.time >= kShortest && moved(from, to) >= least_;
  }
  void judge(const Sample& from, const Sample& to) {
    if (!enough(from, to)) return;
    const base::Duration length = to.time - from.time;
    const uint64_t count = moved(from, to);
    if (length > kLongest && count >= 2 * least_) return;
    ++windows_;
    best_ = std::max(best_, static_cast<double>(count) * 1e9 / static_cast<double>(length.count()));
  }
  [[nodiscard]] Sample& at(uint64_t i) { return samples_[i % kSamples]; }

  uint64_t least_;
  std::array<Sample, kSamples> samples_{};
  uint64_t begin_ = 0;  // Invariant: <= end_ <= begin_ + kSamples
  uint64_t end_ = 0;
  uint64_t windows_ = 0;
  double best_ = 0;
};

}  // namespace rnic::dpdk

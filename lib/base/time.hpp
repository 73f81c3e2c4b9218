/// \file
/// Time as a value. Nobody below `verbs` reads a clock: `Now` comes in as an argument, once per
/// burst, from the TSC in a worker and from the simulator in virtual time.
#pragma once

#include <chrono>
#include <cstdint>

namespace rnic::base {

using Duration = std::chrono::nanoseconds;

/// The time line of one worker. It has no now(): a point in time is always handed in.
struct WorkerTimeline {
  using rep = int64_t;
  using period = std::nano;
  using duration = Duration;
  using time_point = std::chrono::time_point<WorkerTimeline, Duration>;
};

/// A point in time, in nanoseconds since an arbitrary origin of the worker.
using Now = WorkerTimeline::time_point;

/// Later than everything: "no deadline".
inline constexpr Now kNever = Now::max();

/// Nanoseconds since the origin, for printing and arithmetic with wire units.
[[nodiscard]] constexpr int64_t nanos(Now t) { return t.time_since_epoch().count(); }
[[nodiscard]] constexpr Now from_nanos(int64_t ns) { return Now(Duration(ns)); }
[[nodiscard]] constexpr Now earlier(Now a, Now b) { return a < b ? a : b; }

/// Milliseconds as a user gives them; the longest or shortest duration where it cannot be said.
[[nodiscard]] constexpr Duration from_millis(int64_t ms) {
  constexpr int64_t kMost = Duration::max().count() / 1'000'000;
  if (ms > kMost) return Duration::max();
  if (ms < -kMost) return Duration::min();
  return Duration(ms * 1'000'000);
}
/// `wait` behind `now`, which is not before the origin; kNever where no point in time is that late,
/// and the origin at the earliest.
[[nodiscard]] constexpr Now after(Now now, Duration wait) {
  if (wait < -now.time_since_epoch()) return Now{};
  return wait > kNever - now ? kNever : now + wait;
}

}  // namespace rnic::base

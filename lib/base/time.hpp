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

}  // namespace rnic::base

/// \file
/// The clock at the edge: `base::Now` from the CPU's time stamp counter.
#pragma once

#include <x86intrin.h>

#include <cstdint>

#include "base/fail.hpp"
#include "base/time.hpp"

namespace rnic::dpdk {

/// The time stamp counter.
[[nodiscard]] inline uint64_t cycles_now() { return __rdtsc(); }

/// Nanoseconds from the TSC. All clocks of a process agree; the TSC is the same on all cores of the
/// machines DPDK runs on.
class TscClock {
 public:
  /// Fails before Eal::init(), which measures the TSC's frequency.
  [[nodiscard]] static Result<TscClock> create();

  [[nodiscard]] base::Now now() const {
    const unsigned __int128 product = static_cast<unsigned __int128>(cycles_now()) * factor_;
    return base::from_nanos(static_cast<int64_t>(product >> 32));
  }
  [[nodiscard]] static uint64_t hertz();

 private:
  explicit TscClock(uint64_t hertz)
      : factor_(static_cast<uint64_t>((static_cast<unsigned __int128>(1000000000) << 32) / hertz)) {
  }

  uint64_t factor_;  // nanoseconds per cycle, times 2^32
};

}  // namespace rnic::dpdk

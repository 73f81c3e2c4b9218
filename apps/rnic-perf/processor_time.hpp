/// \file
/// The processor time of this process, which other programs beside it do not change much.
#pragma once

#include <time.h>

#include <cstdint>

namespace rnic::perf {

/// Nanoseconds of all threads since the process began.
[[nodiscard]] inline int64_t processor_time_ns() {
  timespec spent{};
  clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &spent);
  return int64_t{spent.tv_sec} * 1'000'000'000 + spent.tv_nsec;
}

}  // namespace rnic::perf

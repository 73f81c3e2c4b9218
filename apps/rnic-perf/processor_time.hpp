/// \file
/// The processor time of this process, which other programs beside it do not change much.
#pragma once

#include <pthread.h>
#include <time.h>

#include <cstdint>

namespace rnic::perf {

/// What a clock of processor time shows, in ns.
[[nodiscard]] inline int64_t nanoseconds_of(clockid_t clock) {
  timespec spent{};
  clock_gettime(clock, &spent);
  return int64_t{spent.tv_sec} * 1'000'000'000 + spent.tv_nsec;
}

/// Nanoseconds of all threads since the process began. Of the others that run it has what they had
/// at the system's latest tick, up to 10 ms ago.
[[nodiscard]] inline int64_t processor_time_ns() {
  return nanoseconds_of(CLOCK_PROCESS_CPUTIME_ID);
}

/// Nanoseconds of one thread of this process, up to now.
[[nodiscard]] inline int64_t processor_time_ns(pthread_t thread) {
  clockid_t clock{};
  return pthread_getcpuclockid(thread, &clock) == 0 ? nanoseconds_of(clock) : 0;
}

}  // namespace rnic::perf

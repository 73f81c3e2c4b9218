/// \file
/// What threads other than the test's own ask of the C library: memory and locks. Who links
/// calls_of_others.cpp has malloc() and its like and the locks of pthreads pass through it.
#pragma once

#include <cstdint>
#include <string>

namespace rnic::test {

/// The calling thread's calls do not count from here on.
void calls_of_this_thread_do_not_count();

struct CallsOfOthers {
  uint64_t memory = 0;  ///< malloc(), calloc(), realloc(), aligned_alloc(), posix_memalign()
  uint64_t locks = 0;   ///< mutexes and read-write locks that were asked for
  std::string last;     ///< the latest of these calls, empty where there was none
};

/// Begins to count anew. \return what has been called since it was asked last
CallsOfOthers calls_of_others();

}  // namespace rnic::test

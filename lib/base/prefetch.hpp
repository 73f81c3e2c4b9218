/// \file
/// Hints to the processor about memory that is going to be used.
#pragma once

namespace rnic::base {

/// The cache line of `at` is going to be written: it comes to this core for that at once, and not
/// first for reading. Does nothing on a processor that does not know the hint.
inline void prefetch_for_write(const void* at) {
  // The compiler gives such a hint only where it may require the processor to know it.
  asm volatile("prefetchw %0" : : "m"(*static_cast<const char*>(at)));
}

}  // namespace rnic::base

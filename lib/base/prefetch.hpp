/// \file
/// Hints to the processor about memory that is going to be used.
#pragma once

#include <cstddef>
#include <cstdint>

namespace rnic::base {

/// The `octets` at `at` are going to be used: their cache lines come to this core meanwhile, all at
/// the same time.
inline void prefetch(const void* at, size_t octets) {
  constexpr uintptr_t kLine = 64;
  const auto first = reinterpret_cast<uintptr_t>(at) & ~(kLine - 1);
  const auto* line = reinterpret_cast<const char*>(first);
  const auto* const end = static_cast<const char*>(at) + octets;
  // Four at a time: three of the four instructions that a line costs otherwise are the loop's.
  constexpr ptrdiff_t kBeforeFourth = 3 * kLine;
  for (; end - line > kBeforeFourth; line += 4 * kLine) {
    __builtin_prefetch(line);
    __builtin_prefetch(line + kLine);
    __builtin_prefetch(line + 2 * kLine);
    __builtin_prefetch(line + 3 * kLine);
  }
  for (; line < end; line += kLine) __builtin_prefetch(line);
}
template <typename T>
void prefetch(const T& object) {
  prefetch(&object, sizeof object);
}

/// The cache line of `at` is going to be written: it comes to this core for that at once, and not
/// first for reading. Does nothing on a processor that does not know the hint.
inline void prefetch_for_write(const void* at) {
  // The compiler gives such a hint only where it may require the processor to know it.
  asm volatile("prefetchw %0" : : "m"(*static_cast<const char*>(at)));
}

}  // namespace rnic::base

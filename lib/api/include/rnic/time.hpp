/// \file
/// Spans of time as the public API takes them: any std::chrono::duration.
#pragma once

#include <chrono>
#include <limits>

namespace rnic {

/// A time-out that is never over.
inline constexpr std::chrono::nanoseconds kForever = std::chrono::nanoseconds::max();

/// A span in nanoseconds. Spans that do not fit, of 292 years and more, become kForever or its
/// negative; std::chrono itself would overflow.
template <typename Rep, typename Period>
[[nodiscard]] constexpr std::chrono::nanoseconds to_nanoseconds(
    std::chrono::duration<Rep, Period> span) {
  using Exact = std::chrono::duration<long double, std::nano>;
  const Exact exact = span;
  if (!(exact < Exact(kForever))) return kForever;  // nor is it a number
  if (exact <= -Exact(kForever)) return -kForever;
  return std::chrono::duration_cast<std::chrono::nanoseconds>(span);
}

}  // namespace rnic

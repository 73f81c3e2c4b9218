/// \file
/// Serial numbers modulo 2^32: TCP sequence numbers, MSNs, timestamps (RFC 9293 s.3.4).
#pragma once

#include <cstdint>

namespace rnic::base {

/// A number modulo 2^32. There is deliberately no operator<: order is only defined for two numbers
/// less than 2^31 apart, and is asked for by name.
struct Seq32 {
  uint32_t value = 0;

  constexpr Seq32() = default;
  constexpr explicit Seq32(uint32_t v) : value(v) {}

  friend constexpr bool operator==(Seq32, Seq32) = default;
  friend constexpr Seq32 operator+(Seq32 a, uint32_t n) { return Seq32(a.value + n); }
  friend constexpr Seq32 operator-(Seq32 a, uint32_t n) { return Seq32(a.value - n); }
  /// Distance from b to a modulo 2^32.
  friend constexpr uint32_t operator-(Seq32 a, Seq32 b) { return a.value - b.value; }
  constexpr Seq32& operator+=(uint32_t n) {
    value += n;
    return *this;
  }
};

/// True when a comes strictly before b.
[[nodiscard]] constexpr bool before(Seq32 a, Seq32 b) {
  return static_cast<int32_t>(a.value - b.value) < 0;
}
[[nodiscard]] constexpr bool before_eq(Seq32 a, Seq32 b) { return !before(b, a); }
[[nodiscard]] constexpr bool after(Seq32 a, Seq32 b) { return before(b, a); }
[[nodiscard]] constexpr bool after_eq(Seq32 a, Seq32 b) { return !before(a, b); }
/// a <= x < b
[[nodiscard]] constexpr bool within(Seq32 x, Seq32 a, Seq32 b) { return (x - a) < (b - a); }

}  // namespace rnic::base

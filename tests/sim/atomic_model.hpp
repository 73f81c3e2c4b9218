/// \file
/// What a word of memory holds after atomics, bit by bit as RFC 7306 section 5.1 tells it.
#pragma once

#include <cstdint>

#include "base/prng.hpp"
#include "rnic/work.hpp"

namespace rnic::simulation {

[[nodiscard]] inline uint64_t after_fetch_add(uint64_t original, const AtomicOperands& o) {
  uint64_t result = 0;
  uint64_t carry = 0;
  for (int bit = 0; bit < 64; ++bit) {
    const uint64_t sum = carry + (original >> bit & 1) + (o.data >> bit & 1);
    result |= (sum & 1) << bit;
    carry = (o.mask >> bit & 1) != 0 ? 0 : sum >> 1;
  }
  return result;
}

[[nodiscard]] inline uint64_t after_compare_swap(uint64_t original, const AtomicOperands& o) {
  for (int bit = 0; bit < 64; ++bit) {
    const bool equal = (original >> bit & 1) == (o.compare >> bit & 1);
    if ((o.compare_mask >> bit & 1) != 0 && !equal) return original;
  }
  uint64_t result = 0;
  for (int bit = 0; bit < 64; ++bit) {
    const uint64_t from = (o.mask >> bit & 1) != 0 ? o.data : original;
    result |= (from >> bit & 1) << bit;
  }
  return result;
}

/// Operands of all kinds; half of the comparisons find what they look for.
[[nodiscard]] inline AtomicOperands draw_operands(uint64_t current, base::Prng& prng) {
  AtomicOperands o{.data = prng.next()};
  o.mask = prng.chance(0.5) ? 0 : prng.next() & prng.next();
  o.compare_mask = prng.chance(0.5) ? ~uint64_t{0} : prng.next();
  o.compare = prng.chance(0.5) ? prng.next() : current;
  return o;
}

}  // namespace rnic::simulation

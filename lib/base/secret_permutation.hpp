/// \file
/// An order of 0 .. size - 1 that nobody can guess, without memory for it.
#pragma once

#include <bit>
#include <cstdint>

#include "base/siphash.hpp"

namespace rnic::base {

/// A Feistel network of four rounds over the least even number of bits that holds `size`, walked
/// until it falls below `size` (Black and Rogaway, "Ciphers with Arbitrary Finite Domains").
class SecretPermutation {
 public:
  /// \param size > 0
  SecretPermutation(const Secret& secret, uint64_t purpose, uint32_t size)
      : source_(secret, purpose),
        size_(size),
        half_bits_((static_cast<uint32_t>(std::bit_width(size - 1u)) + 1) / 2) {}

  /// \param position below size. \return below size; another one for every position
  [[nodiscard]] uint32_t at(uint32_t position) const {
    if (half_bits_ == 0) return 0;
    uint64_t value = position;
    do {
      value = shuffled(value);
    } while (value >= size_);
    return static_cast<uint32_t>(value);
  }

 private:
  [[nodiscard]] uint64_t shuffled(uint64_t value) const {
    const uint64_t mask = (uint64_t{1} << half_bits_) - 1;
    uint64_t left = value >> half_bits_;
    uint64_t right = value & mask;
    for (uint64_t round = 1; round <= 4; ++round) {
      const uint64_t next = left ^ (source_.of(right, round) & mask);
      left = right;
      right = next;
    }
    return left << half_bits_ | right;
  }

  SecretSource source_;
  uint32_t size_;
  uint32_t half_bits_;
};

}  // namespace rnic::base

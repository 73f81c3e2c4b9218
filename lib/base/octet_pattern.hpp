/// \file
/// Sixteen octets compared at once under a mask: the part of a header that is the same every time.
#pragma once

#include <emmintrin.h>

#include <array>
#include <cstdint>
#include <cstring>

namespace rnic::base {

/// What sixteen octets look like, as far as a mask says. By default nothing matches.
class OctetPattern {
 public:
  using Octets = std::array<uint8_t, 16>;

  OctetPattern() { clear(); }

  /// Bits of `value` outside of the mask that will be asked with make it match nothing.
  void set(const Octets& value) { value_ = value; }
  /// A part of it. \param at + 4 <= 16
  void set_be32(uint32_t at, uint32_t word) {
    word = __builtin_bswap32(word);
    std::memcpy(value_.data() + at, &word, sizeof word);
  }
  /// Matches nothing, under any mask that leaves out a bit.
  void clear() { value_.fill(0xff); }

  /// 0xff in each octet that matches; p has sixteen.
  [[nodiscard]] __m128i compare(const uint8_t* p, const Octets& mask) const {
    return _mm_cmpeq_epi8(_mm_and_si128(load(p), load(mask.data())), load(value_.data()));
  }
  [[nodiscard]] static __m128i load(const void* p) {
    return _mm_loadu_si128(static_cast<const __m128i*>(p));
  }
  [[nodiscard]] static bool all(__m128i equal) { return _mm_movemask_epi8(equal) == 0xffff; }

 private:
  Octets value_;
};

}  // namespace rnic::base

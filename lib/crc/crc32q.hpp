/// \file
/// The crc32 instruction on short runs: heads, tails and small inputs of all hardware kernels.
#pragma once

#include <immintrin.h>

#include <array>
#include <cstddef>
#include <cstdint>
#include <cstring>

#include "crc/kernels.hpp"

#define RNIC_TARGET_SSE42 __attribute__((target("sse4.2,pclmul")))

namespace rnic::crc::internal {

/// Loads T from src and, in a copying kernel, stores the same value to dst: the source is read
/// once.
template <typename T, bool kCopy>
inline T take(uint8_t* dst, const uint8_t* src) {
  T v;
  std::memcpy(&v, src, sizeof v);
  if constexpr (kCopy) std::memcpy(dst, &v, sizeof v);
  return v;
}

/// One dependent chain; 3 cycles for each 8 octets.
template <bool kCopy>
RNIC_TARGET_SSE42 inline uint32_t crc32q_run(uint32_t crc, uint8_t* dst, const uint8_t* src,
                                             size_t n) {
  uint64_t c = crc;
  size_t at = 0;
  for (; at + 8 <= n; at += 8) c = _mm_crc32_u64(c, take<uint64_t, kCopy>(dst + at, src + at));
  auto d = static_cast<uint32_t>(c);
  if ((n & 4) != 0) {
    d = _mm_crc32_u32(d, take<uint32_t, kCopy>(dst + at, src + at));
    at += 4;
  }
  if ((n & 2) != 0) {
    d = _mm_crc32_u16(d, take<uint16_t, kCopy>(dst + at, src + at));
    at += 2;
  }
  if ((n & 1) != 0) d = _mm_crc32_u8(d, take<uint8_t, kCopy>(dst + at, src + at));
  return d;
}

/// Longest distance, in words of 8 octets, that join() can bridge.
inline constexpr size_t kJoinWords = 768;

/// kJoin[i]: multiplier that carries a register i words down the message. The missing 33 bits are
/// those of the reflected product and of the crc32q that reduces it.
inline constexpr auto kJoin = [] {
  std::array<uint32_t, kJoinWords + 1> join{};
  uint32_t power = x_power(64 - 33);
  for (size_t i = 1; i < join.size(); ++i) {
    join[i] = power;
    for (int octet = 0; octet < 8; ++octet) power = shift_octet(power);
  }
  return join;
}();

/// The unreduced product that carries `crc` over `words` (1..kJoinWords) words. Products are added,
/// then reduced once by reduce().
RNIC_TARGET_SSE42 inline __m128i carry_over(uint64_t crc, size_t words) {
  return _mm_clmulepi64_si128(_mm_cvtsi64_si128(static_cast<int64_t>(crc)),
                              _mm_cvtsi32_si128(static_cast<int32_t>(kJoin[words])), 0);
}

RNIC_TARGET_SSE42 inline uint32_t reduce(__m128i products) {
  return static_cast<uint32_t>(
      _mm_crc32_u64(0, static_cast<uint64_t>(_mm_cvtsi128_si64(products))));
}

}  // namespace rnic::crc::internal

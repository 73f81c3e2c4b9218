/// \file
/// The crc32 instruction on short runs: heads, tails and small inputs of all hardware kernels.
#pragma once

#include <immintrin.h>

#include <algorithm>
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
inline constexpr size_t kJoinWords = 1536;

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

/// How a block is cut for the two engines of a kernel: a head for neither, folding vectors, and
/// three lanes of words behind them. A round of the loop takes kVectors octets of the one and
/// kWords words of each lane of the other: as much as either does in one time.
/// \tparam kStep octets by which there may be more vectors than rounds
/// \tparam kRounds of a block at most: the lanes may not outgrow kJoin
template <size_t kVectors, size_t kStep, size_t kWords, size_t kRounds>
struct TwoEngines {
  static constexpr size_t kWord = 3 * 8;  // of each lane
  static constexpr size_t kRound = kVectors + kWord * kWords;
  static constexpr size_t kBlock = kVectors + kRounds * kRound;
  static_assert(3 * (kWords * kRounds + kStep / kWord) <= kJoinWords);

  /// \param n octets, kVectors..kBlock + kRound - 1
  explicit TwoEngines(size_t n) {
    rounds = std::min((n - kVectors) / kRound, kRounds);
    size_t rest = n - kVectors - rounds * kRound;
    extra = rest / kStep;
    rest %= kStep;
    words = rounds * kWords + rest / kWord;
    head = rest % kWord;
  }
  size_t rounds;  ///< of vectors and lanes together
  size_t extra;   ///< steps of vectors besides
  size_t words;   ///< of each lane
  size_t head;    ///< octets before the vectors
};

/// Three chains of crc32q over three lanes.
struct Lanes {
  uint64_t a = 0, b = 0, c = 0;

  template <bool kCopy>
  RNIC_TARGET_SSE42 void word(uint8_t* dst, const uint8_t* src, size_t lane) {
    a = _mm_crc32_u64(a, take<uint64_t, kCopy>(dst, src));
    b = _mm_crc32_u64(b, take<uint64_t, kCopy>(dst + lane, src + lane));
    c = _mm_crc32_u64(c, take<uint64_t, kCopy>(dst + 2 * lane, src + 2 * lane));
  }

  /// The register behind the lanes, of `words` words each, when it was `front` before them.
  [[nodiscard]] RNIC_TARGET_SSE42 uint32_t join(uint64_t front, size_t words) const {
    if (words == 0) return static_cast<uint32_t>(front);
    const __m128i joined =
        _mm_xor_si128(_mm_xor_si128(carry_over(front, 3 * words), carry_over(a, 2 * words)),
                      carry_over(b, words));
    return reduce(joined) ^ static_cast<uint32_t>(c);
  }
};

}  // namespace rnic::crc::internal

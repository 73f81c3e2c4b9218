/// \file
/// Folding by carry-less products, 4 x 128 bits at a time: what the kernels with AVX-512 share.
#pragma once

#include "crc/crc32q.hpp"
#include "crc/kernels.hpp"

#define RNIC_TARGET_AVX512 \
  __attribute__((target("sse4.2,pclmul,avx2,vpclmulqdq,avx512f,avx512bw,avx512vl")))

namespace rnic::crc::internal {

inline constexpr size_t kStride = 4 * 64;  // of four accumulators

// That carry the halves of 128 bits over as many octets.
template <unsigned kOctets>
inline constexpr auto kLowMultiplier = static_cast<int64_t>(fold_constant(8 * kOctets + 32));
template <unsigned kOctets>
inline constexpr auto kHighMultiplier = static_cast<int64_t>(fold_constant(8 * kOctets - 32));

// The zero-masking forms with a full mask compile to the plain ones; GCC 12 warns about those.
template <unsigned kOctets>
RNIC_TARGET_AVX512 inline __m512i multipliers4() {
  return _mm512_maskz_broadcast_i32x4(
      0xffff, _mm_set_epi64x(kHighMultiplier<kOctets>, kLowMultiplier<kOctets>));
}

template <int kQuarter>
RNIC_TARGET_AVX512 inline __m128i quarter(__m512i v) {
  return _mm512_maskz_extracti32x4_epi32(0xf, v, kQuarter);
}

RNIC_TARGET_AVX512 inline __m512i fold(__m512i acc, __m512i k, __m512i next) {
  return _mm512_ternarylogic_epi64(_mm512_clmulepi64_epi128(acc, k, 0x00),
                                   _mm512_clmulepi64_epi128(acc, k, 0x11), next, 0x96);
}

// Onto the last one, side by side.
RNIC_TARGET_AVX512 inline __m512i fold_four(__m512i x0, __m512i x1, __m512i x2, __m512i x3) {
  return fold(x0, multipliers4<192>(),
              fold(x1, multipliers4<128>(), fold(x2, multipliers4<64>(), x3)));
}

template <bool kCopy>
RNIC_TARGET_AVX512 inline __m512i take64(uint8_t* dst, const uint8_t* src) {
  const __m512i v = _mm512_loadu_si512(src);
  if constexpr (kCopy) _mm512_storeu_si512(dst, v);
  return v;
}

// The first `head` octets (1..63, a multiple of 4) at the end of a vector of zeros, register added
// in. A whole vector is there: those behind the head are taken once more later. A masked load from
// before `src` would take 130 ns more where the page before is not mapped.
template <bool kCopy>
RNIC_TARGET_AVX512 inline __m512i take_head(uint32_t crc, uint8_t* dst, const uint8_t* src,
                                            size_t head) {
  const auto before = static_cast<int>((64 - head) / 4);
  const __m512i places = _mm512_set_epi32(15, 14, 13, 12, 11, 10, 9, 8, 7, 6, 5, 4, 3, 2, 1, 0);
  const __m512i from = _mm512_sub_epi32(places, _mm512_set1_epi32(before));
  const auto there = static_cast<__mmask16>(0xffffu << before);
  const __m512i v = _mm512_maskz_permutexvar_epi32(there, from, take64<kCopy>(dst, src));
  const auto first = static_cast<__mmask16>(1u << before);
  return _mm512_xor_si512(v, _mm512_maskz_set1_epi32(first, static_cast<int>(crc)));
}

// n >= 64 and a multiple of 4.
template <bool kCopy>
RNIC_TARGET_AVX512 inline __m512i fold_vectors(uint32_t crc, uint8_t* dst, const uint8_t* src,
                                               size_t n) {
  const __m512i k64 = multipliers4<64>();
  const __m512i k_main = multipliers4<kStride>();
  size_t at = n & 63;
  __m512i x0;
  if (at != 0) {
    x0 = take_head<kCopy>(crc, dst, src, at);
  } else {
    const __m512i first = _mm512_maskz_set1_epi32(1, static_cast<int>(crc));
    x0 = _mm512_xor_si512(take64<kCopy>(dst, src), first);
    at = 64;
  }
  if (n - at >= kStride - 64) {
    __m512i x1 = take64<kCopy>(dst + at, src + at);
    __m512i x2 = take64<kCopy>(dst + at + 64, src + at + 64);
    __m512i x3 = take64<kCopy>(dst + at + 128, src + at + 128);
    for (at += 192; n - at >= kStride; at += kStride) {
      x0 = fold(x0, k_main, take64<kCopy>(dst + at, src + at));
      x1 = fold(x1, k_main, take64<kCopy>(dst + at + 64, src + at + 64));
      x2 = fold(x2, k_main, take64<kCopy>(dst + at + 128, src + at + 128));
      x3 = fold(x3, k_main, take64<kCopy>(dst + at + 192, src + at + 192));
    }
    x0 = fold_four(x0, x1, x2, x3);
  }
  for (; at < n; at += 64) x0 = fold(x0, k64, take64<kCopy>(dst + at, src + at));
  return x0;
}

// The four parts of a vector are folded onto the last one, side by side.
RNIC_TARGET_AVX512 inline uint32_t finish(__m512i x) {
  const __m512i k =
      _mm512_set_epi64(0, 0, kHighMultiplier<16>, kLowMultiplier<16>, kHighMultiplier<32>,
                       kLowMultiplier<32>, kHighMultiplier<48>, kLowMultiplier<48>);
  const __m512i last = _mm512_maskz_mov_epi64(0xc0, x);
  const __m512i folded = fold(x, k, last);
  const __m128i acc = _mm_xor_si128(_mm_xor_si128(quarter<0>(folded), quarter<1>(folded)),
                                    _mm_xor_si128(quarter<2>(folded), quarter<3>(folded)));
  const uint64_t low = _mm_crc32_u64(0, static_cast<uint64_t>(_mm_cvtsi128_si64(acc)));
  return static_cast<uint32_t>(
      _mm_crc32_u64(low, static_cast<uint64_t>(_mm_extract_epi64(acc, 1))));
}

/// What is short is folded alone; fewer octets than kAlone are as quick by crc32q.
inline constexpr size_t kAlone = 64;

template <bool kCopy>
RNIC_TARGET_AVX512 inline uint32_t fold_short(uint32_t crc, uint8_t* dst, const uint8_t* src,
                                              size_t n) {
  const size_t odd = n < kAlone ? n : n & 3;
  crc = crc32q_run<kCopy>(crc, dst, src, odd);
  if (odd == n) return crc;
  return finish(fold_vectors<kCopy>(crc, dst + (kCopy ? odd : 0), src + odd, n - odd));
}

}  // namespace rnic::crc::internal

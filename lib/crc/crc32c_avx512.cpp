// Folding by carry-less products, 4 x 128 bits at a time. Head first: the octets that do not fill a
// vector come in behind leading zeros by a masked load, so no tail is left and nothing outside is
// touched.
#include "crc/crc32q.hpp"
#include "crc/kernels.hpp"

#define RNIC_TARGET_AVX512 \
  __attribute__((target("sse4.2,pclmul,avx2,vpclmulqdq,avx512f,avx512bw,avx512vl")))

namespace rnic::crc::internal {

namespace {

constexpr size_t kShort = 64;  // below, crc32q is as fast
constexpr size_t kLanes = 4;   // accumulators of 64 octets
constexpr size_t kStride = 64 * kLanes;

template <unsigned kOctets>
RNIC_TARGET_AVX512 inline __m128i multipliers() {
  constexpr auto kLow = static_cast<int64_t>(fold_constant(8 * kOctets + 32));
  constexpr auto kHigh = static_cast<int64_t>(fold_constant(8 * kOctets - 32));
  return _mm_set_epi64x(kHigh, kLow);
}

// The zero-masking forms with a full mask compile to the plain ones; GCC 12 warns about those.
template <unsigned kOctets>
RNIC_TARGET_AVX512 inline __m512i multipliers4() {
  return _mm512_maskz_broadcast_i32x4(0xffff, multipliers<kOctets>());
}

template <int kQuarter>
RNIC_TARGET_AVX512 inline __m128i quarter(__m512i v) {
  return _mm512_maskz_extracti32x4_epi32(0xf, v, kQuarter);
}

RNIC_TARGET_AVX512 inline __m512i fold(__m512i acc, __m512i k, __m512i next) {
  return _mm512_ternarylogic_epi64(_mm512_clmulepi64_epi128(acc, k, 0x00),
                                   _mm512_clmulepi64_epi128(acc, k, 0x11), next, 0x96);
}

RNIC_TARGET_AVX512 inline __m128i fold(__m128i acc, __m128i k, __m128i next) {
  return _mm_ternarylogic_epi64(_mm_clmulepi64_si128(acc, k, 0x00),
                                _mm_clmulepi64_si128(acc, k, 0x11), next, 0x96);
}

template <bool kCopy>
RNIC_TARGET_AVX512 inline __m512i take64(uint8_t* dst, const uint8_t* src) {
  const __m512i v = _mm512_loadu_si512(src);
  if constexpr (kCopy) _mm512_storeu_si512(dst, v);
  return v;
}

// The first `head` octets (1..63, a multiple of 4) at the end of a vector of zeros, register added
// in.
template <bool kCopy>
RNIC_TARGET_AVX512 inline __m512i take_head(uint32_t crc, uint8_t* dst, const uint8_t* src,
                                            size_t head) {
  const size_t before = 64 - head;
  const __mmask64 mask = ~uint64_t{0} << before;
  const __m512i v = _mm512_maskz_loadu_epi8(mask, src - before);
  if constexpr (kCopy) _mm512_mask_storeu_epi8(dst - before, mask, v);
  const auto first = static_cast<__mmask16>(1u << (before / 4));
  return _mm512_xor_si512(v, _mm512_maskz_set1_epi32(first, static_cast<int>(crc)));
}

// n >= 60 and a multiple of 4.
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
    x0 = fold(fold(fold(x0, k64, x1), k64, x2), k64, x3);
  }
  for (; at < n; at += 64) x0 = fold(x0, k64, take64<kCopy>(dst + at, src + at));
  return x0;
}

template <bool kCopy>
RNIC_TARGET_AVX512 uint32_t run(uint32_t crc, uint8_t* dst, const uint8_t* src, size_t n) {
  const size_t odd = n < kShort ? n : n & 3;
  crc = crc32q_run<kCopy>(crc, dst, src, odd);
  if (odd == n) return crc;
  const __m512i x = fold_vectors<kCopy>(crc, dst + (kCopy ? odd : 0), src + odd, n - odd);
  __m128i acc = fold(quarter<0>(x), multipliers<48>(), quarter<3>(x));
  acc = fold(quarter<1>(x), multipliers<32>(), acc);
  acc = fold(quarter<2>(x), multipliers<16>(), acc);
  const uint64_t low = _mm_crc32_u64(0, static_cast<uint64_t>(_mm_cvtsi128_si64(acc)));
  return static_cast<uint32_t>(
      _mm_crc32_u64(low, static_cast<uint64_t>(_mm_extract_epi64(acc, 1))));
}

}  // namespace

uint32_t update_avx512(uint32_t crc, const uint8_t* data, size_t n) {
  // Never written: it only keeps the arithmetic on the target defined.
  auto* unwritten = const_cast<uint8_t*>(data);
  return run<false>(crc, unwritten, data, n);
}

uint32_t copy_avx512(uint32_t crc, uint8_t* dst, const uint8_t* src, size_t n) {
  return run<true>(crc, dst, src, n);
}

}  // namespace rnic::crc::internal

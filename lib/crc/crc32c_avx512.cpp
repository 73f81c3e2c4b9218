// Folding by carry-less products, 4 x 128 bits at a time, and three chains of crc32q beside it when
// there is enough to do for both. What is short is folded alone, the head first: the octets that do
// not fill a vector come in behind zeros, so no tail is left and nothing outside is touched.
#include "crc/crc32q.hpp"
#include "crc/kernels.hpp"

#define RNIC_TARGET_AVX512 \
  __attribute__((target("sse4.2,pclmul,avx2,vpclmulqdq,avx512f,avx512bw,avx512vl")))

namespace rnic::crc::internal {

namespace {

constexpr size_t kShort = 64;  // below, crc32q is as fast
constexpr size_t kLanes = 4;   // accumulators of 64 octets
constexpr size_t kStride = 64 * kLanes;
constexpr size_t kLong = 2048;  // below, joining the chains takes what they save
constexpr size_t kRounds = 40;  // of one block
// One word of each of the three chains takes little less than the folding of one vector.
using Cut = TwoEngines<kStride, 64, kLanes, kRounds>;

// That carry the halves of 128 bits over as many octets.
template <unsigned kOctets>
constexpr auto kLowMultiplier = static_cast<int64_t>(fold_constant(8 * kOctets + 32));
template <unsigned kOctets>
constexpr auto kHighMultiplier = static_cast<int64_t>(fold_constant(8 * kOctets - 32));

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

// Both engines over one block, in turn for each vector.
template <bool kCopy>
RNIC_TARGET_AVX512 inline uint32_t run_block(uint32_t crc, uint8_t* dst, const uint8_t* src,
                                             const Cut& cut) {
  crc = crc32q_run<kCopy>(crc, dst, src, cut.head);
  size_t v = cut.head;
  const auto vector = [&]() RNIC_TARGET_AVX512 {
    v += 64;
    return take64<kCopy>(dst + v - 64, src + v - 64);
  };
  const size_t lane = cut.words * 8;
  size_t s = v + kStride + cut.rounds * kStride + cut.extra * 64;
  const size_t s_end = s + lane;
  Lanes lanes;
  const auto word = [&]() RNIC_TARGET_AVX512 {
    lanes.word<kCopy>(dst + s, src + s, lane);
    s += 8;
  };
  const __m512i first = _mm512_maskz_set1_epi32(1, static_cast<int>(crc));
  __m512i x0 = _mm512_xor_si512(vector(), first);
  __m512i x1 = vector();
  __m512i x2 = vector();
  __m512i x3 = vector();
  const __m512i k = multipliers4<kStride>();
  for (size_t i = 0; i < cut.rounds; ++i) {
    x0 = fold(x0, k, vector());
    word();
    x1 = fold(x1, k, vector());
    word();
    x2 = fold(x2, k, vector());
    word();
    x3 = fold(x3, k, vector());
    word();
  }
  const __m512i k64 = multipliers4<64>();
  x0 = fold_four(x0, x1, x2, x3);
  for (size_t i = 0; i < cut.extra; ++i) x0 = fold(x0, k64, vector());
  while (s < s_end) word();
  return lanes.join(finish(x0), cut.words);
}

template <bool kCopy>
RNIC_TARGET_AVX512 uint32_t run(uint32_t crc, uint8_t* dst, const uint8_t* src, size_t n) {
  while (n >= kLong) {
    const size_t block = std::min(n, Cut::kBlock);
    crc = run_block<kCopy>(crc, dst, src, Cut(block));
    dst += kCopy ? block : 0;
    src += block;
    n -= block;
  }
  const size_t odd = n < kShort ? n : n & 3;
  crc = crc32q_run<kCopy>(crc, dst, src, odd);
  if (odd == n) return crc;
  return finish(fold_vectors<kCopy>(crc, dst + (kCopy ? odd : 0), src + odd, n - odd));
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

// Two engines side by side, since both are bound by their own execution unit: folding by carry-less
// products of 2 x 128 bits (Gopal et al., "Fast CRC Computation Using PCLMULQDQ") over the front of
// the input, and three chains of crc32q over three lanes behind it. What fits neither is taken
// first, so no tail is left.
#include <algorithm>

#include "crc/crc32q.hpp"
#include "crc/kernels.hpp"

#define RNIC_TARGET_AVX2 __attribute__((target("sse4.2,pclmul,avx2,vpclmulqdq")))

namespace rnic::crc::internal {

namespace {

constexpr size_t kShort = 192;    // below, crc32q chains are as fast
constexpr size_t kVectors = 128;  // octets of one round of the four folding accumulators
constexpr size_t kWords = 5;      // words of each of the three lanes in one round
constexpr size_t kRounds = 50;    // of one block
using Cut = TwoEngines<kVectors, kVectors, kWords, kRounds>;

template <unsigned kOctets>
RNIC_TARGET_AVX2 inline __m128i multipliers() {
  constexpr auto kLow = static_cast<int64_t>(fold_constant(8 * kOctets + 32));
  constexpr auto kHigh = static_cast<int64_t>(fold_constant(8 * kOctets - 32));
  return _mm_set_epi64x(kHigh, kLow);
}

RNIC_TARGET_AVX2 inline __m256i fold(__m256i acc, __m256i k, __m256i next) {
  const __m256i low = _mm256_clmulepi64_epi128(acc, k, 0x00);
  const __m256i high = _mm256_clmulepi64_epi128(acc, k, 0x11);
  return _mm256_xor_si256(_mm256_xor_si256(low, high), next);
}

RNIC_TARGET_AVX2 inline __m128i fold(__m128i acc, __m128i k, __m128i next) {
  const __m128i low = _mm_clmulepi64_si128(acc, k, 0x00);
  const __m128i high = _mm_clmulepi64_si128(acc, k, 0x11);
  return _mm_xor_si128(_mm_xor_si128(low, high), next);
}

template <bool kCopy>
RNIC_TARGET_AVX2 inline __m256i take32(uint8_t* dst, const uint8_t* src) {
  const __m256i v = _mm256_loadu_si256(reinterpret_cast<const __m256i*>(src));
  if constexpr (kCopy) _mm256_storeu_si256(reinterpret_cast<__m256i*>(dst), v);
  return v;
}

// The folding half: four accumulators over 128 octets a round.
struct Fold {
  __m256i x0, x1, x2, x3;

  template <bool kCopy>
  RNIC_TARGET_AVX2 void start(uint32_t crc, uint8_t* dst, const uint8_t* src) {
    const __m128i first = _mm_cvtsi32_si128(static_cast<int32_t>(crc));
    x0 = _mm256_xor_si256(take32<kCopy>(dst, src), _mm256_zextsi128_si256(first));
    x1 = take32<kCopy>(dst + 32, src + 32);
    x2 = take32<kCopy>(dst + 64, src + 64);
    x3 = take32<kCopy>(dst + 96, src + 96);
  }

  template <bool kCopy>
  RNIC_TARGET_AVX2 void round(__m256i k, uint8_t* dst, const uint8_t* src) {
    x0 = fold(x0, k, take32<kCopy>(dst, src));
    x1 = fold(x1, k, take32<kCopy>(dst + 32, src + 32));
    x2 = fold(x2, k, take32<kCopy>(dst + 64, src + 64));
    x3 = fold(x3, k, take32<kCopy>(dst + 96, src + 96));
  }

  [[nodiscard]] RNIC_TARGET_AVX2 uint64_t finish() const {
    const __m256i k32 = _mm256_broadcastsi128_si256(multipliers<32>());
    const __m256i k64 = _mm256_broadcastsi128_si256(multipliers<64>());
    const __m256i x = fold(fold(x0, k32, x1), k64, fold(x2, k32, x3));
    const __m128i acc =
        fold(_mm256_castsi256_si128(x), multipliers<16>(), _mm256_extracti128_si256(x, 1));
    const uint64_t low = _mm_crc32_u64(0, static_cast<uint64_t>(_mm_cvtsi128_si64(acc)));
    return _mm_crc32_u64(low, static_cast<uint64_t>(_mm_extract_epi64(acc, 1)));
  }
};

template <bool kCopy>
RNIC_TARGET_AVX2 inline uint32_t run_block(uint32_t crc, uint8_t* dst, const uint8_t* src,
                                           const Cut& cut) {
  const __m256i k = _mm256_broadcastsi128_si256(multipliers<kVectors>());
  crc = crc32q_run<kCopy>(crc, dst, src, cut.head);
  const size_t lane = cut.words * 8;
  size_t v = cut.head;
  Fold vectors;
  vectors.start<kCopy>(crc, dst + v, src + v);
  v += kVectors;
  size_t s = v + (cut.extra + cut.rounds) * kVectors;
  const size_t s_end = s + lane;
  for (size_t i = 0; i < cut.extra; ++i, v += kVectors) {
    vectors.round<kCopy>(k, dst + v, src + v);
  }
  Lanes lanes;
  for (size_t i = 0; i < cut.rounds; ++i, v += kVectors) {
    vectors.round<kCopy>(k, dst + v, src + v);
    for (size_t word = 0; word < kWords; ++word, s += 8) {
      lanes.word<kCopy>(dst + s, src + s, lane);
    }
  }
  for (; s < s_end; s += 8) lanes.word<kCopy>(dst + s, src + s, lane);
  return lanes.join(vectors.finish(), cut.words);
}

template <bool kCopy>
RNIC_TARGET_AVX2 uint32_t run(uint32_t crc, uint8_t* dst, const uint8_t* src, size_t n) {
  while (n >= kShort) {
    const size_t block = std::min(n, Cut::kBlock);
    crc = run_block<kCopy>(crc, dst, src, Cut(block));
    dst += kCopy ? block : 0;
    src += block;
    n -= block;
  }
  return n == 0 ? crc : (kCopy ? copy_sse42(crc, dst, src, n) : update_sse42(crc, src, n));
}

}  // namespace

uint32_t update_avx2(uint32_t crc, const uint8_t* data, size_t n) {
  // Never written: it only keeps the arithmetic on the target defined.
  auto* unwritten = const_cast<uint8_t*>(data);
  return run<false>(crc, unwritten, data, n);
}

uint32_t copy_avx2(uint32_t crc, uint8_t* dst, const uint8_t* src, size_t n) {
  return run<true>(crc, dst, src, n);
}

}  // namespace rnic::crc::internal

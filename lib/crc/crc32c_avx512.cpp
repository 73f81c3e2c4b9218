// Folding by carry-less products, 4 x 128 bits at a time, and three chains of crc32q beside it when
// there is enough to do for both. What is short is folded alone, the head first: the octets that do
// not fill a vector come in behind zeros, so no tail is left and nothing outside is touched.
#include "crc/fold512.hpp"

namespace rnic::crc::internal {

namespace {

constexpr size_t kLong = 2048;  // below, joining the chains takes what they save
constexpr size_t kRounds = 40;  // of one block
// One word of each of the three chains takes little less than the folding of one vector.
using Cut = TwoEngines<kStride, 64, kStride / 64, kRounds>;

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
  return fold_short<kCopy>(crc, dst, src, n);
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

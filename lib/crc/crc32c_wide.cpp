// Folding and chains of crc32q, as in crc32c_avx512.cpp, for CPUs that begin a product of 512 bits
// in each cycle. There, what is left to save is instructions and lines that are touched twice: the
// vectors are whole lines of the cache (of the copy, where there is one), the octets before them
// are words of a chain, those behind them need a multiplier and no branch, and the products of all
// of them meet before anything is reduced.
#include <utility>

#include "crc/fold512.hpp"

#define RNIC_TARGET_WIDE \
  __attribute__((target("sse4.2,pclmul,bmi2,avx2,vpclmulqdq,avx512f,avx512bw,avx512vl")))
// GCC finds methods with many vectors too long; a call would bring all of them to the stack.
#define RNIC_WIDE_INLINE RNIC_TARGET_WIDE __attribute__((always_inline)) inline

namespace rnic::crc::internal {

namespace {

constexpr uint32_t kLine = 64;
constexpr size_t kLeast = 1280;   // below, the way of crc32c_avx512.cpp has fewer instructions
constexpr size_t kLong = 2560;    // below, joining the lanes takes what they save
constexpr size_t kBlock = 12288;  // of one run at most
constexpr size_t kAhead = 512;    // octets by which a copy asks for its lines
static_assert(kBlock / 8 <= kJoinWords);

/// How a run is cut: a first word, words up to a line, lanes of words, vectors, and what is behind
/// the last whole line. A unit is four vectors and, with lanes, a line: two words of each.
template <bool kLanes>
struct Lines {
  Lines(uintptr_t at, size_t n) {
    const auto from = static_cast<uint32_t>(at);
    lead = 8 - from % 8;
    words = (0 - (from + lead)) % kLine / 8;
    tail = (from + static_cast<uint32_t>(n)) % kLine;
    const uint32_t lines = (static_cast<uint32_t>(n) - lead - 8 * words - tail) / kLine;
    units = (lines - 4) / (kLanes ? 5 : 4);
    vectors = kLanes ? lines - units : lines;
    extra = vectors - 4 - 4 * units;
  }
  uint32_t lead;     ///< octets of the first word: 1..8
  uint32_t words;    ///< behind it: 0..7
  uint32_t tail;     ///< octets behind the vectors: 0..63
  uint32_t units;    ///< behind the first four vectors
  uint32_t extra;    ///< vectors behind the units: 0..3, with lanes 0..4
  uint32_t vectors;  ///< all of them
};

/// Carries the four parts of a vector over 48, 32, 16 and 0 octets, and over as many more as its
/// index says, so that they meet at the end of the run.
struct alignas(64) Meeting {
  std::array<uint64_t, 8> halves;
};
constexpr auto kMeeting = [] {
  std::array<Meeting, kLine> all{};
  for (unsigned octets = 0; octets < kLine; ++octets) {
    for (unsigned part = 0; part < 4; ++part) {
      const unsigned bits = 8 * (octets + 48 - 16 * part);
      all[octets].halves[2 * part] = fold_constant(bits + 32);
      all[octets].halves[2 * part + 1] = fold_constant_below(bits);
    }
  }
  return all;
}();

/// Four accumulators, and where the next line is.
template <bool kCopy>
struct Folds {
  __m512i x0, x1, x2, x3;
  __m512i k;
  uint8_t* dst;
  const uint8_t* src;

  RNIC_WIDE_INLINE void start(uint8_t* to, const uint8_t* from) {
    k = multipliers4<kStride>();
    dst = to;
    src = from;
    x0 = take64<kCopy>(dst, src);
    x1 = take64<kCopy>(dst + 64, src + 64);
    x2 = take64<kCopy>(dst + 128, src + 128);
    x3 = take64<kCopy>(dst + 192, src + 192);
    pass(kStride);
  }
  RNIC_WIDE_INLINE void next(__m512i& x, size_t at) {
    if constexpr (kCopy) fetch(dst + at);
    x = fold(x, k, take64<kCopy>(dst + at, src + at));
  }
  RNIC_WIDE_INLINE void two() {
    next(x0, 0);
    next(x1, 64);
    pass(128);
    std::swap(x0, x2);
    std::swap(x1, x3);
  }
  RNIC_WIDE_INLINE void one() {
    next(x0, 0);
    pass(64);
    const __m512i x = x0;
    x0 = x1;
    x1 = x2;
    x2 = x3;
    x3 = x;
  }
  RNIC_WIDE_INLINE void pass(size_t octets) {
    dst += kCopy ? octets : 0;
    src += octets;
  }

 private:
  RNIC_WIDE_INLINE static void fetch(const uint8_t* from) {
    const uintptr_t ahead = reinterpret_cast<uintptr_t>(from) + kAhead;
    _mm_prefetch(reinterpret_cast<const char*>(ahead), _MM_HINT_T0);
  }
};

/// The chain of what is before the vectors and, with lanes, three more beside it.
template <bool kLanes>
struct Chains {
  uint64_t a = 0, b = 0, c = 0, d = 0;
  size_t lane = 0;
  const uint8_t* src = nullptr;

  RNIC_WIDE_INLINE void ab(size_t at) {
    if constexpr (!kLanes) return;
    a = _mm_crc32_u64(a, take<uint64_t, false>(nullptr, src + at));
    b = _mm_crc32_u64(b, take<uint64_t, false>(nullptr, src + lane + at));
  }
  RNIC_WIDE_INLINE void cd(size_t at) {
    if constexpr (!kLanes) return;
    c = _mm_crc32_u64(c, take<uint64_t, false>(nullptr, src + 2 * lane + at));
    d = _mm_crc32_u64(d, take<uint64_t, false>(nullptr, src + 3 * lane + at));
  }

  /// The unreduced product of all of them, carried to the end of `vectors` vectors behind them.
  [[nodiscard]] RNIC_WIDE_INLINE __m128i join(uint32_t vectors) const {
    const size_t over = 8 * size_t{vectors};
    const size_t words = lane / 8;
    if constexpr (!kLanes) return carry_over(a, over);
    return _mm_xor_si128(_mm_xor_si128(carry(a, over + 3 * words), carry(b, over + 2 * words)),
                         _mm_xor_si128(carry(c, over + words), carry(d, over)));
  }

 private:
  // As carry_over(), by way of the stack: what would take a register across is the unit that
  // multiplies, and it has most to do.
  RNIC_WIDE_INLINE static __m128i carry(uint64_t crc, size_t words) {
    __m128i v;
    asm("vmovq %1, %0" : "=x"(v) : "m"(crc));
    return _mm_clmulepi64_si128(v, _mm_cvtsi32_si128(static_cast<int32_t>(kJoin[words])), 0);
  }
};

/// The first 1..8 octets as a word behind zeros. What the register has beyond them goes on.
template <bool kCopy>
RNIC_WIDE_INLINE uint64_t first_word(uint32_t crc, uint8_t* dst, const uint8_t* src,
                                     uint32_t octets) {
  const uint64_t word = take<uint64_t, kCopy>(dst, src) ^ crc;
  const uint64_t beyond = uint64_t{crc} >> 4 * octets >> 4 * octets;
  return _mm_crc32_u64(0, word << (64 - 8 * octets)) ^ beyond;
}

template <bool kCopy, size_t kWords>
RNIC_WIDE_INLINE uint64_t chain(uint64_t crc, uint8_t*& dst, const uint8_t*& src) {
  for (size_t at = 0; at < 8 * kWords; at += 8) {
    crc = _mm_crc32_u64(crc, take<uint64_t, kCopy>(dst + at, src + at));
  }
  dst += kCopy ? 8 * kWords : 0;
  src += 8 * kWords;
  return crc;
}

/// Four vectors and, with lanes, a word of two chains behind each.
template <bool kCopy, bool kLanes>
RNIC_WIDE_INLINE void unit(Folds<kCopy>& folds, Chains<kLanes>& chains, size_t i) {
  folds.next(folds.x0, kStride * i);
  chains.ab(16 * i);
  folds.next(folds.x1, kStride * i + 64);
  chains.cd(16 * i);
  folds.next(folds.x2, kStride * i + 128);
  chains.ab(16 * i + 8);
  folds.next(folds.x3, kStride * i + 192);
  chains.cd(16 * i + 8);
}

template <size_t kUnits, bool kCopy, bool kLanes>
RNIC_WIDE_INLINE void some_units(Folds<kCopy>& folds, Chains<kLanes>& chains) {
  unit(folds, chains, 0);
  if constexpr (kUnits > 1) unit(folds, chains, 1);
  if constexpr (kUnits > 2) unit(folds, chains, 2);
  if constexpr (kUnits > 3) unit(folds, chains, 3);
  folds.pass(kUnits * kStride);
  chains.src += kLanes ? kUnits * 16 : 0;
}

template <bool kCopy, bool kLanes>
RNIC_WIDE_INLINE void run_vectors(Folds<kCopy>& folds, Chains<kLanes>& chains,
                                  const Lines<kLanes>& cut) {
  for (uint32_t i = cut.units / 4; i != 0; --i) some_units<4>(folds, chains);
  if ((cut.units & 2) != 0) some_units<2>(folds, chains);
  if ((cut.units & 1) != 0) some_units<1>(folds, chains);
  if (kLanes && (cut.extra & 4) != 0) {
    folds.two();
    folds.two();
  }
  if ((cut.extra & 2) != 0) folds.two();
  if ((cut.extra & 1) != 0) folds.one();
}

/// The register of what the four parts of a vector are together, side by side.
RNIC_WIDE_INLINE uint32_t sum_parts(__m512i x) {
  const __m256i half = _mm256_xor_si256(_mm512_maskz_extracti64x4_epi64(0xf, x, 0),
                                        _mm512_maskz_extracti64x4_epi64(0xf, x, 1));
  const __m128i acc =
      _mm_xor_si128(_mm256_extracti128_si256(half, 0), _mm256_extracti128_si256(half, 1));
  const uint64_t low = _mm_crc32_u64(0, static_cast<uint64_t>(_mm_cvtsi128_si64(acc)));
  return static_cast<uint32_t>(
      _mm_crc32_u64(low, static_cast<uint64_t>(_mm_extract_epi64(acc, 1))));
}

/// n octets, kLeast..kBlock. A copy writes the last vector first and each line whole: what is
/// written twice has been added as it was written the second time.
template <bool kCopy, bool kLanes>
RNIC_TARGET_WIDE __attribute__((noinline)) uint32_t run_lines(uint32_t crc, uint8_t* dst,
                                                              const uint8_t* src, size_t n) {
  static_assert(!kCopy || !kLanes);
  const Lines<kLanes> cut(reinterpret_cast<uintptr_t>(kCopy ? dst : src), n);
  const auto behind = static_cast<__mmask64>(~uint64_t{1} << (63 - cut.tail));
  const __m512i tail = _mm512_maskz_mov_epi8(behind, take64<kCopy>(dst + n - 64, src + n - 64));
  Chains<kLanes> chains;
  chains.a = first_word<kCopy>(crc, dst, src, cut.lead);
  dst += kCopy ? cut.lead : 0;
  src += cut.lead;
  if ((cut.words & 4) != 0) chains.a = chain<kCopy, 4>(chains.a, dst, src);
  if ((cut.words & 2) != 0) chains.a = chain<kCopy, 2>(chains.a, dst, src);
  if ((cut.words & 1) != 0) chains.a = chain<kCopy, 1>(chains.a, dst, src);
  chains.src = src;
  chains.lane = kLanes ? size_t{cut.units} * 16 : 0;
  Folds<kCopy> folds;
  folds.start(dst, src + 4 * chains.lane);
  run_vectors(folds, chains, cut);
  const Meeting& meeting = kMeeting[cut.tail];
  const __m128i over_tail = _mm_cvtsi64_si128(static_cast<int64_t>(meeting.halves[7]));
  const __m128i before = _mm_clmulepi64_si128(chains.join(cut.vectors), over_tail, 0);
  const __m512i rest = fold(tail, _mm512_load_si512(&kMeeting[0]), _mm512_zextsi128_si512(before));
  const __m512i x = fold_four(folds.x0, folds.x1, folds.x2, folds.x3);
  return sum_parts(fold(x, _mm512_load_si512(&meeting), rest));
}

RNIC_TARGET_WIDE uint32_t update_block(uint32_t crc, const uint8_t* src, size_t n) {
  // Never written: it only keeps the arithmetic on the target defined.
  auto* unwritten = const_cast<uint8_t*>(src);
  if (n < kLeast) return fold_short<false>(crc, unwritten, src, n);
  return n < kLong ? run_lines<false, false>(crc, unwritten, src, n)
                   : run_lines<false, true>(crc, unwritten, src, n);
}

// The stores bound a copy, so lanes would have nothing to save.
RNIC_TARGET_WIDE uint32_t copy_block(uint32_t crc, uint8_t* dst, const uint8_t* src, size_t n) {
  return n < kLeast ? fold_short<true>(crc, dst, src, n) : run_lines<true, false>(crc, dst, src, n);
}

}  // namespace

uint32_t update_wide(uint32_t crc, const uint8_t* data, size_t n) {
  for (; n > kBlock; n -= kBlock / 2, data += kBlock / 2) {
    crc = update_block(crc, data, kBlock / 2);
  }
  return update_block(crc, data, n);
}

uint32_t copy_wide(uint32_t crc, uint8_t* dst, const uint8_t* src, size_t n) {
  for (; n > kBlock; n -= kBlock / 2, dst += kBlock / 2, src += kBlock / 2) {
    crc = copy_block(crc, dst, src, kBlock / 2);
  }
  return copy_block(crc, dst, src, n);
}

}  // namespace rnic::crc::internal

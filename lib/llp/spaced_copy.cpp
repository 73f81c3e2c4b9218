#include "llp/spaced_copy.hpp"

#include <immintrin.h>

#include <algorithm>
#include <cstring>

#define RNIC_TARGET_AVX512 __attribute__((target("bmi2,avx512f,avx512bw")))

namespace rnic::llp {

namespace {

void gather_pieces(uint8_t* dst, const uint8_t* src, size_t n, const Spacing& spacing) {
  for (size_t piece = spacing.first; n != 0; piece = spacing.between) {
    piece = std::min(piece, n);
    std::memcpy(dst, src, piece);
    dst += piece;
    src += piece + spacing.gap;
    n -= piece;
  }
}

void spread_pieces(uint8_t* dst, const uint8_t* src, size_t n, const Spacing& spacing) {
  for (size_t piece = spacing.first; n != 0; piece = spacing.between) {
    piece = std::min(piece, n);
    std::memcpy(dst, src, piece);
    dst += piece + spacing.gap;
    src += piece;
    n -= piece;
  }
}

constexpr size_t kLine = 64;

/// The octets of its line from `p` on.
size_t rest_of_line(const uint8_t* p) { return kLine - (reinterpret_cast<uintptr_t>(p) & 63); }

RNIC_TARGET_AVX512 inline __mmask64 first_octets(size_t n) {
  return _bzhi_u64(~0ull, static_cast<unsigned>(n));
}

/// Lines of the target that come later are fetched meanwhile, some of them in vain. A hint may name
/// any address.
RNIC_TARGET_AVX512 inline void copy_lines(uint8_t* dst, const uint8_t* src, size_t lines) {
  constexpr uintptr_t kAhead = 512;
  for (size_t i = 0; i < lines; ++i) {
    uint8_t* const line = dst + i * kLine;
    const uintptr_t ahead = reinterpret_cast<uintptr_t>(line) + kAhead;
    _mm_prefetch(reinterpret_cast<const char*>(ahead), _MM_HINT_T0);
    _mm512_store_si512(line, _mm512_loadu_si512(src + i * kLine));
  }
}

/// What a kernel knows of the run: it goes on from line to line of the target. `left` octets stand
/// in front of the next gap, `n` are to be copied.
struct Place {
  uint8_t* dst;
  const uint8_t* src;
  size_t n;
  size_t left;

  RNIC_TARGET_AVX512 void lines() {
    const size_t count = std::min(left, n) / kLine;
    copy_lines(dst, src, count);
    move(count * kLine);
    src += count * kLine;
    left -= count * kLine;
  }
  /// \param octets of content and target; those of the source are the caller's
  void move(size_t octets) {
    dst += octets;
    n -= octets;
  }
};

RNIC_TARGET_AVX512 inline void gather_line(Place& at, const Spacing& spacing) {
  const size_t size = std::min(rest_of_line(at.dst), at.n);
  const __mmask64 all = first_octets(size);
  const __mmask64 before = first_octets(std::min(at.left, size));
  const __m512i octets =
      _mm512_mask_loadu_epi8(_mm512_maskz_loadu_epi8(before, at.src),
                             _kandn_mask64(before, all), at.src + spacing.gap);
  _mm512_mask_storeu_epi8(at.dst, all, octets);
  at.move(size);
  at.src += size;
  if (size <= at.left) {
    at.left -= size;
  } else {
    at.src += spacing.gap;
    at.left += spacing.between - size;
  }
}

RNIC_TARGET_AVX512 void gather_avx512(uint8_t* dst, const uint8_t* src, size_t n,
                                      const Spacing& spacing) {
  Place at{dst, src, n, spacing.first};
  while (at.n != 0) {
    gather_line(at, spacing);
    at.lines();
  }
}

RNIC_TARGET_AVX512 inline void spread_line(Place& at, const Spacing& spacing) {
  const size_t room = rest_of_line(at.dst);
  const size_t before = std::min({room, at.left, at.n});
  const __m512i first = _mm512_maskz_loadu_epi8(first_octets(before), at.src);
  const size_t behind = before + spacing.gap;
  if (before == at.n || behind >= room || before < at.left) {
    _mm512_mask_storeu_epi8(at.dst, first_octets(before), first);
    at.move(before);
    at.src += before;
    at.left -= before;
    if (at.left != 0 || at.n == 0) return;
    at.dst += spacing.gap;
    at.left = spacing.between;
    return;
  }
  // The gap and octets behind it are in this line, too.
  const size_t more = std::min(room - behind, at.n - before);
  const __mmask64 second = _kandn_mask64(first_octets(behind), first_octets(behind + more));
  _mm512_mask_storeu_epi8(at.dst, first_octets(behind + more),
                          _mm512_mask_loadu_epi8(first, second, at.src - spacing.gap));
  at.move(before + more);
  at.dst += spacing.gap;
  at.src += before + more;
  at.left = spacing.between - more;
}

RNIC_TARGET_AVX512 void spread_avx512(uint8_t* dst, const uint8_t* src, size_t n,
                                      const Spacing& spacing) {
  Place at{dst, src, n, spacing.first};
  while (at.n != 0) {
    spread_line(at, spacing);
    if (rest_of_line(at.dst) == kLine) at.lines();
  }
}

constexpr SpacedKernel kPieces{"pieces", gather_pieces, spread_pieces};
constexpr SpacedKernel kAvx512{"avx512", gather_avx512, spread_avx512};

bool has_avx512() {
  return __builtin_cpu_supports("bmi2") && __builtin_cpu_supports("avx512f") &&
         __builtin_cpu_supports("avx512bw");
}

}  // namespace

const SpacedKernel& spaced_kernel() {
  static const SpacedKernel& chosen = has_avx512() ? kAvx512 : kPieces;
  return chosen;
}

std::vector<SpacedKernel> spaced_kernels() {
  std::vector<SpacedKernel> kernels{kPieces};
  if (has_avx512()) kernels.push_back(kAvx512);
  return kernels;
}

}  // namespace rnic::llp

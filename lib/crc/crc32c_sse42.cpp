// Three chains of crc32q side by side hide the instruction's latency of three cycles. The input is
// cut into three lanes of equal length, whatever the length, and the lanes are joined by two
// carry-less products.
#include <algorithm>

#include "crc/crc32q.hpp"
#include "crc/kernels.hpp"

namespace rnic::crc::internal {

namespace {

constexpr size_t kShort = 96;       // below, one chain is as fast
constexpr size_t kLaneWords = 128;  // longest lane, in words of 8 octets

template <bool kCopy>
RNIC_TARGET_SSE42 uint32_t run(uint32_t crc, uint8_t* dst, const uint8_t* src, size_t n) {
  while (n >= kShort) {
    const size_t words = std::min(n / 24, kLaneWords);
    const size_t lane = words * 8;
    uint64_t a = crc;
    uint64_t b = 0;
    uint64_t c = 0;
    for (size_t at = 0; at < lane; at += 8) {
      a = _mm_crc32_u64(a, take<uint64_t, kCopy>(dst + at, src + at));
      b = _mm_crc32_u64(b, take<uint64_t, kCopy>(dst + lane + at, src + lane + at));
      c = _mm_crc32_u64(c, take<uint64_t, kCopy>(dst + 2 * lane + at, src + 2 * lane + at));
    }
    crc = reduce(_mm_xor_si128(carry_over(a, 2 * words), carry_over(b, words))) ^
          static_cast<uint32_t>(c);
    dst += kCopy ? 3 * lane : 0;
    src += 3 * lane;
    n -= 3 * lane;
  }
  return crc32q_run<kCopy>(crc, dst, src, n);
}

}  // namespace

RNIC_TARGET_SSE42 uint32_t update_short_sse42(uint32_t crc, const uint8_t* data, size_t n) {
  // Never written, as below.
  auto* at = const_cast<uint8_t*>(data);
  uint64_t c = crc;
  for (uint8_t* const end = at + n / 16 * 16; at != end; at += 16) {
    c = _mm_crc32_u64(c, take<uint64_t, false>(at, at));
    c = _mm_crc32_u64(c, take<uint64_t, false>(at + 8, at + 8));
  }
  return crc32q_run<false>(static_cast<uint32_t>(c), at, at, n % 16);
}

uint32_t update_sse42(uint32_t crc, const uint8_t* data, size_t n) {
  // Never written: it only keeps the arithmetic on the target defined.
  auto* unwritten = const_cast<uint8_t*>(data);
  return run<false>(crc, unwritten, data, n);
}

uint32_t copy_sse42(uint32_t crc, uint8_t* dst, const uint8_t* src, size_t n) {
  return run<true>(crc, dst, src, n);
}

}  // namespace rnic::crc::internal

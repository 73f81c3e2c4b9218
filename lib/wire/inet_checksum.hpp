/// \file
/// The Internet checksum of IPv4, ICMP and TCP (RFC 1071).
///
/// A partial sum is a uint32_t whose value modulo 0xffff is the sum of the big-endian 16-bit words
/// so far. Parts compose as long as every part but the last has an even number of octets.
#pragma once

#include <emmintrin.h>

#include <cstddef>
#include <cstdint>
#include <cstring>

#include "base/bytes.hpp"

namespace rnic::wire {

namespace internal {

/// Sum of the little-endian 32-bit words of p[0..n), n a multiple of 32, in 64 bits. A carry cannot
/// be lost: an IP packet has less than 2^32 words.
[[nodiscard]] inline uint64_t sum_words(const uint8_t* p, size_t n) {
  const __m128i low = _mm_set_epi32(0, -1, 0, -1);
  __m128i a = _mm_setzero_si128();
  __m128i b = _mm_setzero_si128();
  for (const uint8_t* end = p + n; p != end; p += 32) {
    const __m128i x = _mm_loadu_si128(reinterpret_cast<const __m128i*>(p));
    const __m128i y = _mm_loadu_si128(reinterpret_cast<const __m128i*>(p + 16));
    a = _mm_add_epi64(a, _mm_add_epi64(_mm_and_si128(x, low), _mm_srli_epi64(x, 32)));
    b = _mm_add_epi64(b, _mm_add_epi64(_mm_and_si128(y, low), _mm_srli_epi64(y, 32)));
  }
  a = _mm_add_epi64(a, b);
  a = _mm_add_epi64(a, _mm_unpackhi_epi64(a, a));
  return static_cast<uint64_t>(_mm_cvtsi128_si64(a));
}

}  // namespace internal

/// Adds octets to a partial sum (start with 0). An odd last octet counts as if a zero octet
/// followed.
[[nodiscard]] inline uint32_t checksum_add(uint32_t sum, base::ByteView octets) {
  const uint8_t* p = octets.data();
  size_t n = octets.size();
  uint64_t acc = 0;
  if (n >= 32) {
    const size_t bulk = n & ~size_t{31};
    acc = internal::sum_words(p, bulk);
    p += bulk;
    n -= bulk;
  }
  for (; n >= 4; p += 4, n -= 4) {
    uint32_t word;
    std::memcpy(&word, p, sizeof word);
    acc += word;
  }
  if (n != 0) {
    uint32_t rest = p[0];
    if (n >= 2) rest |= static_cast<uint32_t>(p[1]) << 8;
    if (n == 3) rest |= static_cast<uint32_t>(p[2]) << 16;
    acc += rest;
  }
  acc = (acc & 0xffffffff) + (acc >> 32);
  acc = (acc & 0xffff) + ((acc >> 16) & 0xffff) + (acc >> 32);
  acc = (acc & 0xffff) + (acc >> 16);
  acc = (acc & 0xffff) + (acc >> 16);
  // One's complement sums may be made in either octet order and swapped once (RFC 1071 s.2 B).
  const uint64_t total = uint64_t{sum} + __builtin_bswap16(static_cast<uint16_t>(acc));
  return static_cast<uint32_t>(total) + static_cast<uint32_t>(total >> 32);
}

/// Folds and complements a partial sum. The result is in host order, to be stored big-endian. It is
/// 0 over octets that include a correct checksum field.
[[nodiscard]] constexpr uint16_t checksum_fold(uint32_t sum) {
  sum = (sum & 0xffff) + (sum >> 16);
  sum = (sum & 0xffff) + (sum >> 16);
  return static_cast<uint16_t>(~sum);
}

/// Partial sum of the IPv4 pseudo header (RFC 9293 s.3.1). Addresses are in host order; `length`
/// counts the octets of the transport header and data.
[[nodiscard]] constexpr uint32_t pseudo_header_sum(uint32_t src, uint32_t dst, uint8_t protocol,
                                                   uint32_t length) {
  return (src >> 16) + (src & 0xffff) + (dst >> 16) + (dst & 0xffff) + protocol + (length >> 16) +
         (length & 0xffff);
}

}  // namespace rnic::wire

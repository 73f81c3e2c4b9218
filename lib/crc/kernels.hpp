/// \file
/// The kernels, one file each; for kernels.cpp only. Every function handles any length and
/// alignment and takes and gives the running register.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>

namespace rnic::crc::internal {

/// Castagnoli's polynomial, reflected: bit 31 is x^0.
inline constexpr uint32_t kPolynomial = 0x82f63b78u;

/// One octet table driven: the register after eight zero bits.
[[nodiscard]] constexpr uint32_t shift_octet(uint32_t v) {
  for (int i = 0; i < 8; ++i) v = (v >> 1) ^ (kPolynomial & (0u - (v & 1)));
  return v;
}

/// x^n modulo the polynomial, reflected.
[[nodiscard]] constexpr uint32_t x_power(unsigned n) {
  uint32_t v = 0x80000000u;
  for (; n >= 8; n -= 8) v = shift_octet(v);
  while (n-- != 0) v = (v >> 1) ^ (kPolynomial & (0u - (v & 1)));
  return v;
}

/// Multiplier that carries 64 bits of a folding accumulator `n` bits down the message. The shift
/// makes up for the bit that a reflected carry-less product is short of.
[[nodiscard]] constexpr uint64_t fold_constant(unsigned n) { return uint64_t{x_power(n)} << 1; }

/// The multiplier for 32 bits fewer, which may be less than none: x is invertible.
[[nodiscard]] constexpr uint64_t fold_constant_below(unsigned n) {
  uint32_t v = x_power(n);
  for (int i = 0; i < 32; ++i) v = (v >> 31) != 0 ? (v ^ kPolynomial) << 1 | 1 : v << 1;
  return uint64_t{v} << 1;
}

uint32_t update_ref(uint32_t crc, const uint8_t* data, size_t n);
uint32_t copy_ref(uint32_t crc, uint8_t* dst, const uint8_t* src, size_t n);

uint32_t update_isal(uint32_t crc, const uint8_t* data, size_t n);
uint32_t copy_isal(uint32_t crc, uint8_t* dst, const uint8_t* src, size_t n);

/// Needs SSE 4.2. For few octets, but right for any number.
uint32_t update_short_sse42(uint32_t crc, const uint8_t* data, size_t n);

/// Needs SSE 4.2 and PCLMULQDQ.
uint32_t update_sse42(uint32_t crc, const uint8_t* data, size_t n);
uint32_t copy_sse42(uint32_t crc, uint8_t* dst, const uint8_t* src, size_t n);

/// Needs AVX2, PCLMULQDQ and VPCLMULQDQ.
uint32_t update_avx2(uint32_t crc, const uint8_t* data, size_t n);
uint32_t copy_avx2(uint32_t crc, uint8_t* dst, const uint8_t* src, size_t n);

/// Needs AVX-512 F, BW and VL, PCLMULQDQ and VPCLMULQDQ.
uint32_t update_avx512(uint32_t crc, const uint8_t* data, size_t n);
uint32_t copy_avx512(uint32_t crc, uint8_t* dst, const uint8_t* src, size_t n);

/// Needs BMI2 besides. For CPUs that begin a product of 512 bits in each cycle.
uint32_t update_wide(uint32_t crc, const uint8_t* data, size_t n);
uint32_t copy_wide(uint32_t crc, uint8_t* dst, const uint8_t* src, size_t n);

}  // namespace rnic::crc::internal

// Zero octets multiply the register, as a polynomial, by a power of x.
#include <array>

#include "crc/crc.hpp"

namespace rnic::crc {

namespace {

constexpr uint32_t kPolynomial = 0x82f63b78u;  // the bit of the highest power is the lowest one
constexpr uint32_t kHighBit = 0x80000000u;     // x to the power of 0

constexpr uint32_t multiply(uint32_t a, uint32_t b) {
  uint32_t product = 0;
  for (uint32_t bit = kHighBit; bit != 0; bit >>= 1) {
    if ((a & bit) != 0) product ^= b;
    b = (b & 1) != 0 ? b >> 1 ^ kPolynomial : b >> 1;
  }
  return product;
}

/// The factors that append 1, 2, 4, 8... zero octets.
constexpr std::array<uint32_t, 64> make_powers() {
  std::array<uint32_t, 64> powers{};
  powers[0] = kHighBit >> 8;
  for (size_t i = 1; i < powers.size(); ++i) powers[i] = multiply(powers[i - 1], powers[i - 1]);
  return powers;
}
constexpr auto kPowers = make_powers();

}  // namespace

uint32_t shift(uint32_t crc, uint64_t octets) {
  for (size_t i = 0; octets != 0; ++i, octets >>= 1) {
    if ((octets & 1) != 0) crc = multiply(crc, kPowers[i]);
  }
  return crc;
}

}  // namespace rnic::crc

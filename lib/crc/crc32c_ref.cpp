// The reference: one table, one octet at a time. Slow and plain, it proves the others.
#include "crc/kernels.hpp"

namespace rnic::crc::internal {

namespace {

constexpr std::array<uint32_t, 256> make_table() {
  std::array<uint32_t, 256> table{};
  for (uint32_t i = 0; i < table.size(); ++i) table[i] = shift_octet(i);
  return table;
}

constexpr std::array<uint32_t, 256> kTable = make_table();

}  // namespace

uint32_t update_ref(uint32_t crc, const uint8_t* data, size_t n) {
  for (size_t i = 0; i < n; ++i) crc = (crc >> 8) ^ kTable[(crc ^ data[i]) & 0xff];
  return crc;
}

uint32_t copy_ref(uint32_t crc, uint8_t* dst, const uint8_t* src, size_t n) {
  for (size_t i = 0; i < n; ++i) {
    const uint8_t octet = src[i];
    dst[i] = octet;
    crc = (crc >> 8) ^ kTable[(crc ^ octet) & 0xff];
  }
  return crc;
}

}  // namespace rnic::crc::internal

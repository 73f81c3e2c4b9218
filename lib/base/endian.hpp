/// \file
/// Loads and stores of network-order (big-endian) and little-endian fields at any alignment.
/// The caller has checked the length: these functions touch exactly sizeof(type) octets.
#pragma once

#include <bit>
#include <cstdint>
#include <cstring>

namespace rnic::base {

static_assert(std::endian::native == std::endian::little, "x86-64 is the only target so far");

[[nodiscard]] inline uint16_t load_be16(const uint8_t* p) {
  uint16_t v;
  std::memcpy(&v, p, sizeof v);
  return __builtin_bswap16(v);
}
[[nodiscard]] inline uint32_t load_be32(const uint8_t* p) {
  uint32_t v;
  std::memcpy(&v, p, sizeof v);
  return __builtin_bswap32(v);
}
[[nodiscard]] inline uint64_t load_be64(const uint8_t* p) {
  uint64_t v;
  std::memcpy(&v, p, sizeof v);
  return __builtin_bswap64(v);
}
[[nodiscard]] inline uint32_t load_le32(const uint8_t* p) {
  uint32_t v;
  std::memcpy(&v, p, sizeof v);
  return v;
}
inline void store_be16(uint8_t* p, uint16_t v) {
  v = __builtin_bswap16(v);
  std::memcpy(p, &v, sizeof v);
}
inline void store_be32(uint8_t* p, uint32_t v) {
  v = __builtin_bswap32(v);
  std::memcpy(p, &v, sizeof v);
}
inline void store_be64(uint8_t* p, uint64_t v) {
  v = __builtin_bswap64(v);
  std::memcpy(p, &v, sizeof v);
}
inline void store_le32(uint8_t* p, uint32_t v) { std::memcpy(p, &v, sizeof v); }

}  // namespace rnic::base

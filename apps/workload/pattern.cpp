#include "workload/pattern.hpp"

#include <cstdio>
#include <cstring>

namespace rnic::workload {

namespace {

uint64_t word_at(const Pattern& pattern, uint64_t offset) {
  uint64_t z = (pattern.seed * 0x9e3779b97f4a7c15ull + pattern.generation) * 0xbf58476d1ce4e5b9ull +
               (offset / 8) * 0x94d049bb133111ebull;
  z ^= z >> 29;
  z *= 0xbf58476d1ce4e5b9ull;
  return z ^ (z >> 32);
}

}  // namespace

void fill(std::span<uint8_t> octets, const Pattern& pattern, uint64_t offset) {
  size_t i = 0;
  for (; i + 8 <= octets.size(); i += 8) {
    const uint64_t word = word_at(pattern, offset + i);
    std::memcpy(octets.data() + i, &word, 8);
  }
  if (i < octets.size()) {
    const uint64_t word = word_at(pattern, offset + i);
    std::memcpy(octets.data() + i, &word, octets.size() - i);
  }
}

std::optional<Mismatch> compare(std::span<const uint8_t> octets, const Pattern& pattern,
                                uint64_t offset) {
  for (size_t i = 0; i < octets.size(); i += 8) {
    const size_t n = octets.size() - i < 8 ? octets.size() - i : 8;
    const uint64_t word = word_at(pattern, offset + i);
    if (std::memcmp(octets.data() + i, &word, n) == 0) continue;
    uint8_t expected[8];
    std::memcpy(expected, &word, 8);
    for (size_t k = 0; k < n; ++k) {
      if (octets[i + k] != expected[k]) return Mismatch{i + k, expected[k], octets[i + k]};
    }
  }
  return std::nullopt;
}

void poison(std::span<uint8_t> octets) { std::memset(octets.data(), 0xdb, octets.size()); }

std::string describe(const Mismatch& mismatch) {
  char text[96];
  std::snprintf(text, sizeof text, "octet %llu is 0x%02x, expected 0x%02x",
                static_cast<unsigned long long>(mismatch.offset), mismatch.found,
                mismatch.expected);
  return text;
}

}  // namespace rnic::workload

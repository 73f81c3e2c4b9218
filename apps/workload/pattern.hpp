/// \file
/// Content that tells where it came from: every 8 octets depend on seed, generation and offset.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>

namespace rnic::workload {

/// Names one content of a buffer.
struct Pattern {
  uint64_t seed = 1;
  uint64_t generation = 0;
};

/// Writes the pattern into `octets`; its first octet stands at `offset` (a multiple of 8).
void fill(std::span<uint8_t> octets, const Pattern& pattern, uint64_t offset = 0);

struct Mismatch {
  uint64_t offset = 0;
  uint8_t expected = 0;
  uint8_t found = 0;
};
[[nodiscard]] std::string describe(const Mismatch& mismatch);

/// Compares every octet; the first difference, or nothing.
[[nodiscard]] std::optional<Mismatch> compare(std::span<const uint8_t> octets,
                                              const Pattern& pattern, uint64_t offset = 0);

/// Overwrites with a content that no pattern has.
void poison(std::span<uint8_t> octets);

}  // namespace rnic::workload

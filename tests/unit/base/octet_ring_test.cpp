#include "base/octet_ring.hpp"

#include <gtest/gtest.h>

#include <array>
#include <numeric>
#include <vector>

namespace rnic::base {
namespace {

// Every offset and every length, so that the end of the memory is met everywhere; and no octet
// besides is touched.
TEST(OctetRing, WrapsAtEveryOffset) {
  constexpr uint32_t kSize = 7;
  for (uint64_t offset = 0; offset < 3 * kSize; ++offset) {
    for (uint32_t n = 0; n <= kSize; ++n) {
      std::array<uint8_t, kSize> memory;
      memory.fill(0xee);
      OctetRing ring(memory.data(), kSize);
      EXPECT_EQ(ring.size(), kSize);
      std::vector<uint8_t> octets(n);
      std::iota(octets.begin(), octets.end(), uint8_t{1});
      ring.write(offset, octets);
      for (uint32_t i = 0; i < kSize; ++i) {
        EXPECT_EQ(memory[(offset + i) % kSize], i < n ? i + 1 : 0xee);
      }
      std::vector<uint8_t> back(n);
      ring.read(offset, back);
      EXPECT_EQ(back, octets);
    }
  }
}

// Positions count on for the life of a stream, beyond 32 bits.
TEST(OctetRing, OffsetsBeyond32Bits) {
  std::array<uint8_t, 16> memory{};
  OctetRing ring(memory.data(), 16);
  const std::array<uint8_t, 4> octets{1, 2, 3, 4};
  ring.write((uint64_t{1} << 40) + 14, octets);
  EXPECT_EQ(memory[14], 1);
  EXPECT_EQ(memory[15], 2);
  EXPECT_EQ(memory[0], 3);
  EXPECT_EQ(memory[1], 4);
}

}  // namespace
}  // namespace rnic::base

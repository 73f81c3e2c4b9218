#include "ddp/coverage.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <vector>

#include "base/prng.hpp"

namespace rnic::ddp {
namespace {

constexpr uint64_t kKey = 0x123456789abcdef;

struct Part {
  uint64_t from;
  uint32_t length;
};

Coverage covered(const std::vector<Part>& parts) {
  Coverage coverage;
  for (const Part& part : parts) coverage.add(part.from, part.length, kKey);
  return coverage;
}

TEST(Coverage, NothingCoversNothing) {
  EXPECT_TRUE(Coverage{}.exactly(0, kKey));
  EXPECT_FALSE(Coverage{}.exactly(1, kKey));
  EXPECT_TRUE(covered({{0, 0}, {5, 0}}).exactly(0, kKey));
}

// Against a map of octets: random cuts, shuffled, and with one part moved, doubled, or left out.
TEST(Coverage, AgreesWithAMapOfOctets_BUG_01) {
  base::Prng prng(3);
  int whole = 0;
  for (int round = 0; round < 20'000; ++round) {
    const auto length = static_cast<uint32_t>(prng.between(1, 40));
    std::vector<Part> parts;
    for (uint32_t at = 0; at < length;) {
      const auto n = static_cast<uint32_t>(prng.between(1, std::min(length - at, 9u)));
      parts.push_back({at, n});
      at += n;
    }
    for (size_t i = parts.size(); i > 1; --i) std::swap(parts[i - 1], parts[prng.below(i)]);
    Part& victim = parts[prng.below(parts.size())];
    switch (prng.below(5)) {
      case 0: victim.from = prng.below(length); break;
      case 1: victim = parts[prng.below(parts.size())]; break;
      case 2: victim.length += 1; break;
      default: break;
    }
    std::vector<int> map(200);
    for (const Part& part : parts) {
      for (uint32_t i = 0; i < part.length; ++i) ++map[part.from + i];
    }
    const bool exact =
        std::all_of(map.begin(), map.begin() + length, [](int n) { return n == 1; }) &&
        std::all_of(map.begin() + length, map.end(), [](int n) { return n == 0; });
    ASSERT_EQ(covered(parts).exactly(length, kKey), exact) << round;
    whole += exact ? 1 : 0;
  }
  EXPECT_GT(whole, 5000);
  EXPECT_LT(whole, 18'000);
}

// As many octets as there should be, and the first and the last among them.
TEST(Coverage, TheSumOfLengthsIsNotEnough_BUG_01) {
  EXPECT_FALSE(covered({{0, 10}, {0, 10}}).exactly(20, kKey));
  EXPECT_FALSE(covered({{10, 10}, {10, 10}}).exactly(20, kKey));
  EXPECT_FALSE(covered({{0, 5}, {10, 10}, {15, 5}}).exactly(20, kKey));
  EXPECT_TRUE(covered({{10, 10}, {0, 10}}).exactly(20, kKey));
  EXPECT_EQ(covered({{10, 10}, {10, 10}}).octets(), 20u);
}

}  // namespace
}  // namespace rnic::ddp

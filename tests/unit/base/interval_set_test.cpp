#include "base/interval_set.hpp"

#include <gtest/gtest.h>

#include <bitset>

#include "base/prng.hpp"

namespace rnic::base {
namespace {

constexpr size_t kSpace = 128;
using Bits = std::bitset<kSpace>;

size_t runs(const Bits& bits) {
  size_t n = 0;
  for (size_t i = 0; i < kSpace; ++i) n += bits[i] && (i == 0 || !bits[i - 1]);
  return n;
}

Bits bits_of(Range r) {
  Bits bits;
  for (uint64_t i = r.begin; i < r.end; ++i) bits.set(i);
  return bits;
}

template <size_t N>
void expect_same(const IntervalSet<N>& set, const Bits& model) {
  set.validate();
  Bits seen;
  for (const Range& r : set.ranges()) seen |= bits_of(r);
  ASSERT_EQ(seen, model);
  ASSERT_EQ(set.covered(), model.count());
  ASSERT_EQ(set.size(), runs(model));
  ASSERT_EQ(set.empty(), model.none());
}

Range random_range(Prng& prng) {
  const uint64_t begin = prng.below(kSpace);
  return {begin, begin + prng.below(std::min<uint64_t>(kSpace - begin, 24) + 1)};
}

Range gap_of(const Bits& model, Range r) {
  while (r.begin < r.end && model[r.begin]) ++r.begin;
  uint64_t end = r.begin;
  while (end < r.end && !model[end]) ++end;
  return {r.begin, end};
}

template <size_t N>
void random_walk(uint64_t seed) {
  Prng prng(seed);
  IntervalSet<N> set;
  Bits model;
  uint64_t refused = 0;
  for (int step = 0; step < 30'000; ++step) {
    const Range r = random_range(prng);
    const uint64_t what = prng.below(100);
    if (what < 60) {
      const Bits after = model | bits_of(r);
      const bool fits = runs(after) <= N;
      // can_insert() is asked before a segment is accepted: it may not promise what insert()
      // refuses.
      if (!r.empty()) {
        ASSERT_EQ(set.can_insert(r), set.insert(r)) << r.begin << ".." << r.end;
      } else {
        ASSERT_TRUE(set.insert(r));
      }
      if (fits) {
        model = after;
      } else {
        ++refused;
      }
    } else if (what < 65) {
      const uint64_t offset = prng.below(kSpace);
      set.erase_below(offset);
      for (uint64_t i = 0; i < offset; ++i) model.reset(i);
    } else if (what < 67) {
      set.clear();
      model.reset();
    } else {
      const Bits mask = bits_of(r);
      ASSERT_EQ(set.contains(r), (model & mask) == mask);
      if (!r.empty()) {
        ASSERT_EQ(set.intersects(r), (model & mask).any());
      }
      const Range gap = set.first_gap(r);
      const Range expected = gap_of(model, r);
      ASSERT_EQ(gap.empty(), expected.empty()) << r.begin << ".." << r.end;
      if (!gap.empty()) {
        ASSERT_EQ(gap, expected);
      }
    }
    expect_same(set, model);
    if (testing::Test::HasFatalFailure()) return;
  }
  if (N < 8) {
    EXPECT_GT(refused, 0u);
  }
}

TEST(IntervalSet, RandomAgainstABitmapSmall) {
  for (uint64_t seed = 1; seed <= 4; ++seed) random_walk<3>(seed);
}

TEST(IntervalSet, RandomAgainstABitmapLarge) {
  for (uint64_t seed = 11; seed <= 14; ++seed) random_walk<64>(seed);
}

TEST(IntervalSet, AFullSetStillTakesWhatTouches) {
  IntervalSet<2> set;
  ASSERT_TRUE(set.insert({10, 20}));
  ASSERT_TRUE(set.insert({30, 40}));
  EXPECT_FALSE(set.can_insert({50, 60}));
  EXPECT_FALSE(set.insert({50, 60}));
  EXPECT_TRUE(set.can_insert({40, 50}));
  EXPECT_TRUE(set.insert({40, 50}));
  EXPECT_TRUE(set.insert({20, 30}));
  EXPECT_EQ(set.size(), 1u);
  EXPECT_EQ(set.ranges()[0], (Range{10, 50}));
}

TEST(IntervalSet, OffsetsNearTheEndOfTheSpace) {
  IntervalSet<4> set;
  ASSERT_TRUE(set.insert({UINT64_MAX - 10, UINT64_MAX}));
  EXPECT_TRUE(set.contains({UINT64_MAX - 5, UINT64_MAX}));
  EXPECT_EQ(set.covered(), 10u);
}

}  // namespace
}  // namespace rnic::base

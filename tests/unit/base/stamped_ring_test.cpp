// StampedRing: what it does that SpscRing does not. What both do is in rings_test.cpp.

#include "base/stamped_ring.hpp"

#include <gtest/gtest.h>

#include <cstdint>
#include <deque>

#include "base/prng.hpp"

namespace rnic::base {
namespace {

// A stamp of an earlier round, or of another size, is never taken for one of this round.
TEST(StampedRing, ResizesWithElementsInIt) {
  Prng prng(7);
  StampedRing<int> ring(4);
  std::deque<int> model;
  for (int i = 0; i < 20'000; ++i) {
    if (prng.next32() % 16 == 0) {
      const size_t wanted = prng.next32() % 70;
      ring.resize(wanted);
      EXPECT_GE(ring.capacity(), wanted);
    } else if (prng.next32() % 2 == 0) {
      const bool fits = model.size() < ring.capacity();
      ASSERT_EQ(ring.push(i), fits);
      if (fits) model.push_back(i);
    } else {
      int out = -1;
      ASSERT_EQ(ring.pop(out), !model.empty());
      if (model.empty()) continue;
      ASSERT_EQ(out, model.front());
      model.pop_front();
    }
    ASSERT_EQ(ring.size(), model.size());
  }
}

// A completion and its stamp share one cache line.
TEST(StampedRing, APlaceThatFitsALineLiesInOne) {
  struct Long {
    uint64_t words[7];
  };
  EXPECT_EQ(StampedRing<Long>::octets_for(8) - StampedRing<Long>::octets_for(4), 4u * 64);
  struct Longer {
    uint64_t words[8];
  };
  EXPECT_EQ(StampedRing<Longer>::octets_for(8) - StampedRing<Longer>::octets_for(4), 4u * 72);
}

}  // namespace
}  // namespace rnic::base

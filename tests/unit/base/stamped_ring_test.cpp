// StampedRing: what it does that SpscRing does not. What both do is in rings_test.cpp.

#include "base/stamped_ring.hpp"

#include <gtest/gtest.h>

#include <cstdint>
#include <deque>
#include <set>

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

// A completion and its stamp share one cache line. What is seldom is apart, here an octet.
TEST(StampedRing, APlaceThatFitsALineLiesInOne) {
  struct Long {
    uint64_t words[7];
  };
  EXPECT_EQ(StampedRing<Long>::octets_for(8) - StampedRing<Long>::octets_for(4), 4u * (64 + 1));
  struct Longer {
    uint64_t words[8];
  };
  EXPECT_EQ(StampedRing<Longer>::octets_for(8) - StampedRing<Longer>::octets_for(4), 4u * (72 + 1));
}

// Begun again at any moment, seen at once or late, with and without the part that few have: each
// element comes once and in order, and as long as the ring empties between, few places are used.
TEST(StampedRing, BeginsAgainWhereAllHasBeenTaken) {
  Prng prng(8);
  StampedRing<uint64_t, uint64_t> ring(256);
  std::deque<uint64_t> model;
  uint64_t next = 1;
  for (int i = 0; i < 50'000; ++i) {
    if (prng.next32() % 4 == 0) ring.rewind();
    if (prng.next32() % 500 == 0) ring.resize(256 + prng.next32() % 300);
    for (uint32_t more = prng.next32() % 8; more != 0; --more, ++next) {
      const uint64_t seldom = ~next;
      const bool fits = ring.push(next, next % 3 == 0 ? &seldom : nullptr);
      ASSERT_EQ(fits, model.size() < ring.capacity());
      if (fits) model.push_back(next);
    }
    ring.consume(prng.next32() % 9, [&](uint64_t value, uint64_t seldom) {
      ASSERT_EQ(value, model.front());
      if (value % 3 == 0) {
        ASSERT_EQ(seldom, ~value);
      }
      model.pop_front();
    });
    ASSERT_EQ(ring.size(), model.size());
  }
}

TEST(StampedRing, UsesFewPlacesWhereItEmptiesBetween) {
  struct Element {
    uint64_t words[7];
  };
  StampedRing<Element> ring(1024);
  std::set<const Element*> places;
  for (uint64_t i = 0; i < 1000; ++i) {
    ring.rewind();
    for (uint64_t n = 0; n < 3; ++n) ASSERT_TRUE(ring.push({{i}}));
    for (Element out; ring.front() != nullptr;) {
      places.insert(ring.front());
      ASSERT_TRUE(ring.pop(out));
      ASSERT_EQ(out.words[0], i);
    }
  }
  EXPECT_LT(places.size(), 24u);
}

}  // namespace
}  // namespace rnic::base

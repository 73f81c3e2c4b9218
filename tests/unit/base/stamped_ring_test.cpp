// StampedRing against a deque, and between two threads.

#include "base/stamped_ring.hpp"

#include <gtest/gtest.h>

#include <cstdint>
#include <deque>
#include <thread>

#include "base/prng.hpp"

namespace rnic::base {
namespace {

TEST(StampedRing, OneThreadAgainstADeque) {
  Prng prng(2);
  for (const size_t capacity : {0, 1, 2, 3, 8, 100}) {
    StampedRing<int> ring(capacity);
    EXPECT_GE(ring.capacity(), capacity);
    std::deque<int> model;
    for (int step = 0; step < 5000; ++step) {
      if (prng.chance(0.5)) {
        const bool fits = model.size() < ring.capacity();
        ASSERT_EQ(ring.push(step), fits);
        if (fits) model.push_back(step);
      } else {
        const int* const front = ring.front();
        ASSERT_EQ(front == nullptr, model.empty());
        if (front != nullptr) {
          ASSERT_EQ(*front, model.front());
        }
        int out = -1;
        ASSERT_EQ(ring.pop(out), !model.empty());
        if (!model.empty()) {
          ASSERT_EQ(out, model.front());
          model.pop_front();
        }
      }
      ASSERT_EQ(ring.size(), model.size());
      ASSERT_EQ(ring.empty(), model.empty());
    }
  }
}

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

// The plain octets of each element must be visible with its stamp, and its place must be empty
// before it is written again: thread sanitizer builds check that.
TEST(StampedRing, TwoThreads) {
  constexpr uint64_t kCount = 200'000;
  struct Item {
    uint64_t a = 0;
    uint64_t b = 0;
  };
  StampedRing<Item> ring(64);
  std::thread producer([&] {
    for (uint64_t i = 0; i < kCount;) {
      if (ring.push({i, ~i})) {
        ++i;
      } else {
        std::this_thread::yield();
      }
    }
  });
  uint64_t wrong = 0;
  for (uint64_t i = 0; i < kCount;) {
    Item item;
    if (!ring.pop(item)) {
      std::this_thread::yield();
      continue;
    }
    wrong += item.a != i || item.b != ~i;
    ++i;
  }
  producer.join();
  EXPECT_EQ(wrong, 0u);
  EXPECT_TRUE(ring.empty());
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

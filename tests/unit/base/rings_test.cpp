// What SpscRing and StampedRing have in common, against a deque and between two threads.

#include <gtest/gtest.h>

#include <cstdint>
#include <deque>
#include <thread>

#include "base/prng.hpp"
#include "base/spsc_ring.hpp"
#include "base/stamped_ring.hpp"

namespace rnic::base {
namespace {

struct Marked {
  template <typename T>
  using Of = SpscRing<T>;
};
struct Stamped {
  template <typename T>
  using Of = StampedRing<T>;
};

template <typename Kind>
class Rings : public testing::Test {};
using Kinds = testing::Types<Marked, Stamped>;
TYPED_TEST_SUITE(Rings, Kinds);

TYPED_TEST(Rings, OneThreadAgainstADeque) {
  Prng prng(2);
  for (const size_t capacity : {0, 1, 2, 3, 8, 100}) {
    typename TypeParam::template Of<int> ring(capacity);
    EXPECT_GE(ring.capacity(), capacity);
    std::deque<int> model;
    for (int step = 0; step < 5000; ++step) {
      if (prng.chance(0.5)) {
        const bool fits = model.size() < ring.capacity();
        ASSERT_EQ(ring.push(step), fits);
        if (fits) model.push_back(step);
      } else {
        if (prng.chance(0.5)) {
          const int* const front = ring.front();
          ASSERT_EQ(front == nullptr, model.empty());
          if (front != nullptr) {
            ASSERT_EQ(*front, model.front());
          }
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

// The plain octets of each element must be visible, too: thread sanitizer builds check that.
TYPED_TEST(Rings, TwoThreads) {
  constexpr uint64_t kCount = 200'000;
  struct Item {
    uint64_t a = 0;
    uint64_t b = 0;
  };
  typename TypeParam::template Of<Item> ring(64);
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
    wrong += ring.size() > ring.capacity();  // what was taken has been counted before
    ++i;
  }
  producer.join();
  EXPECT_EQ(wrong, 0u);
  EXPECT_TRUE(ring.empty());
}

}  // namespace
}  // namespace rnic::base

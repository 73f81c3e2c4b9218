// Rings that endpoints use in turn: one is there for each promise, and only those in use at once
// take memory.

#include "rdmap/ring_store.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <memory>
#include <random>
#include <set>
#include <vector>

namespace rnic::rdmap {
namespace {

using Numbers = RingStore<uint64_t>;
using Rings = std::vector<std::unique_ptr<Ring<uint64_t>>>;

std::unique_ptr<Ring<uint64_t>> promised(Numbers& store, uint32_t slots) {
  return std::unique_ptr<Ring<uint64_t>>(new Ring<uint64_t>(store.promise(slots)));
}

TEST(RingStore, ARingIsThereForEachPromise) {
  Numbers store;
  Rings rings;
  for (uint64_t i = 0; i < 100; ++i) {
    rings.push_back(promised(store, 4));
    store.validate();
  }
  for (uint64_t i = 0; i < 100; ++i) {
    rings[i]->take();
    for (uint32_t seq = 0; seq < 4; ++seq) (*rings[i])[seq] = 4 * i + seq;
  }
  store.validate();
  for (uint64_t i = 0; i < 100; ++i) {
    for (uint32_t seq = 0; seq < 8; ++seq) EXPECT_EQ((*rings[i])[seq], 4 * i + seq % 4);
  }
  EXPECT_EQ(store.pool(4).taken(), 100u);
}

TEST(RingStore, OnlyRingsInUseAtOnceAreTouched) {
  Numbers store;
  Rings rings;
  for (int i = 0; i < 50; ++i) rings.push_back(promised(store, 2));
  for (const auto& ring : rings) {
    ring->take();
    ring->give();
  }
  EXPECT_EQ(store.pool(2).touched(), 1u);
  EXPECT_EQ(store.pool(2).promised(), 50u);
  rings.clear();
  EXPECT_EQ(store.pool(2).promised(), 0u);
  store.validate();
}

TEST(RingStore, EachSizeHasRingsOfItsOwn) {
  Numbers store;
  const Ring<uint64_t> small = store.promise(2);
  Ring<uint64_t> large = store.promise(64);
  EXPECT_EQ(small.size(), 2u);
  EXPECT_EQ(large.size(), 64u);
  large.take();
  EXPECT_EQ(store.pool(2).taken(), 0u);
  EXPECT_EQ(store.pool(64).taken(), 1u);
  EXPECT_DEATH(static_cast<void>(store.promise(3)), "slots");
}

// A promise is withdrawn with its ring, whether it is taken or not, in any order.
TEST(RingStore, NoRingHasTwoUsers) {
  Numbers store;
  Rings rings;
  std::mt19937 random(1);
  for (int step = 0; step < 3000; ++step) {
    const size_t at = rings.empty() ? 0 : random() % rings.size();
    const auto what = random() % 4;
    if (what == 0 || rings.empty()) {
      rings.push_back(promised(store, 8));
    } else if (what == 1 && rings.size() > 20) {
      rings.erase(rings.begin() + static_cast<std::ptrdiff_t>(at));
    } else {
      rings[at]->is_taken() ? rings[at]->give() : rings[at]->take();
    }
    std::set<const uint64_t*> places;
    uint32_t taken = 0;
    for (const auto& ring : rings) {
      if (!ring->is_taken()) continue;
      ++taken;
      places.insert(&(*ring)[0]);
    }
    ASSERT_EQ(places.size(), taken);
    ASSERT_EQ(store.pool(8).taken(), taken);
    store.validate();
  }
}

TEST(RingPool, NobodyTakesARingThatWasNotPromised) {
  RingPool<uint64_t> pool(2);
  EXPECT_DEATH(static_cast<void>(pool.take()), "promised_");
  pool.promise();
  static_cast<void>(pool.take());
  EXPECT_DEATH(static_cast<void>(pool.take()), "promised_");
}

}  // namespace
}  // namespace rnic::rdmap

#include <gtest/gtest.h>

#include <deque>
#include <memory>
#include <vector>

#include "base/bucket_heads.hpp"
#include "base/prng.hpp"
#include "base/slab.hpp"
#include "base/spsc_ring.hpp"

namespace rnic::base {
namespace {

struct Counted {
  explicit Counted(int v) : value(v) { ++live; }
  ~Counted() { --live; }
  Counted(const Counted&) = delete;
  Counted& operator=(const Counted&) = delete;
  int value;
  static inline int live = 0;
};

TEST(Slab, StaleHandlesNeverReachANewObject) {
  Slab<Counted> slab(1);
  const Handle first = slab.emplace(1);
  ASSERT_NE(slab.get(first), nullptr);
  EXPECT_EQ(&slab.at(first.index), slab.get(first));
  slab.erase(first);
  EXPECT_EQ(slab.get(first), nullptr);
  const Handle second = slab.emplace(2);
  EXPECT_EQ(second.index, first.index);
  EXPECT_EQ(slab.get(first), nullptr);
  EXPECT_EQ(slab.get(second)->value, 2);
}

TEST(Slab, FullInvalidAndForeignHandles) {
  Slab<Counted> slab(2);
  EXPECT_TRUE(slab.emplace(1).valid());
  EXPECT_TRUE(slab.emplace(2).valid());
  EXPECT_FALSE(slab.emplace(3).valid());
  EXPECT_EQ(slab.get({}), nullptr);
  EXPECT_EQ(slab.get({2, 1}), nullptr);
  EXPECT_EQ(slab.get({0, 0}), nullptr);
}

TEST(Slab, RandomUseAgainstAList) {
  Prng prng(1);
  std::vector<std::pair<Handle, int>> alive;
  std::vector<Handle> dead;
  {
    Slab<Counted> slab(50);
    for (int step = 0; step < 20'000; ++step) {
      if (prng.chance(0.55)) {
        const Handle h = slab.emplace(step);
        ASSERT_EQ(h.valid(), alive.size() < 50);
        if (h.valid()) alive.emplace_back(h, step);
      } else if (!alive.empty()) {
        const size_t i = prng.below(alive.size());
        slab.erase(alive[i].first);
        dead.push_back(alive[i].first);
        alive[i] = alive.back();
        alive.pop_back();
      }
      slab.validate();
      ASSERT_EQ(slab.live(), alive.size());
      ASSERT_EQ(Counted::live, static_cast<int>(alive.size()));
      if (!dead.empty()) {
        ASSERT_EQ(slab.get(dead[prng.below(dead.size())]), nullptr);
      }
      if (!alive.empty()) {
        const auto& [h, value] = alive[prng.below(alive.size())];
        ASSERT_EQ(slab.get(h)->value, value);
      }
    }
    size_t visited = 0;
    slab.for_each([&](Handle h, Counted&) {
      ++visited;
      slab.erase(h);
    });
    EXPECT_EQ(visited, alive.size());
    EXPECT_EQ(slab.live(), 0u);
    slab.emplace(1);
  }
  EXPECT_EQ(Counted::live, 0);
}

TEST(SlabDeath, ErasingAStaleHandleIsOurBug) {
  Slab<int> slab(1);
  const Handle h = slab.emplace(1);
  slab.erase(h);
  EXPECT_DEATH(slab.erase(h), "get\\(h\\)");
}

TEST(SpscRing, ResizesWithElementsInIt) {
  Prng prng(7);
  SpscRing<std::unique_ptr<int>> ring(4);
  std::deque<int> model;
  for (int i = 0; i < 20'000; ++i) {
    if (prng.next32() % 16 == 0) {
      const size_t wanted = prng.next32() % 70;
      ring.resize(wanted);
      EXPECT_GE(ring.capacity(), wanted);
    } else if (prng.next32() % 2 == 0) {
      const bool fits = model.size() < ring.capacity();
      ASSERT_EQ(ring.push(std::make_unique<int>(i)), fits);
      if (fits) model.push_back(i);
    } else {
      std::unique_ptr<int> out;
      ASSERT_EQ(ring.pop(out), !model.empty());
      if (model.empty()) continue;
      ASSERT_EQ(*out, model.front());
      model.pop_front();
    }
    ASSERT_EQ(ring.size(), model.size());
  }
}

TEST(SpscRing, MovesOwnership) {
  SpscRing<std::unique_ptr<int>> ring(2);
  EXPECT_TRUE(ring.push(std::make_unique<int>(7)));
  std::unique_ptr<int> out;
  ASSERT_TRUE(ring.pop(out));
  EXPECT_EQ(*out, 7);
}

// Whatever the size and wherever they stand: each head that is not empty, once, in order.
TEST(BucketHeads, AllBusyOnesAreVisited) {
  for (const uint32_t empty : {0u, UINT32_MAX}) {
    Prng random(7);
    for (size_t size = 0; size <= 70; ++size) {
      std::vector<uint32_t> heads(size, empty);
      for (uint64_t busy = random.below(5); size != 0 && busy > 0; --busy) {
        heads[random.below(size)] = static_cast<uint32_t>(random.between(1, 1000));
      }
      std::vector<size_t> expected;
      for (size_t i = 0; i < size; ++i) {
        if (heads[i] != empty) expected.push_back(i);
      }
      std::vector<size_t> visited;
      for_each_busy_bucket(heads, empty, [&](size_t bucket) { visited.push_back(bucket); });
      EXPECT_EQ(visited, expected) << size;
    }
  }
}

}  // namespace
}  // namespace rnic::base

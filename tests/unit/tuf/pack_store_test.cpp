#include "tuf/pack_store.hpp"

#include <gtest/gtest.h>

#include <vector>

namespace rnic::tuf {
namespace {

// A chain gives its ULPDUs in their order, and each node comes back.
TEST(PackStore, ChainsKeepTheirOrder) {
  PackStore store(5);
  EXPECT_EQ(store.free(), 5u);
  const uint32_t one = store.begin({1, 0});
  uint32_t last = store.append(one, {2, 0});
  const uint32_t other = store.begin({9, 0});  // of another framing PDU, in between
  last = store.append(last, {3, 0});
  EXPECT_EQ(store.used(), 4u);
  EXPECT_EQ(store[other].next, framing::kNone);
  std::vector<uint64_t> tags;
  for (uint32_t node = one; node != framing::kNone;) {
    EXPECT_EQ(store[node].tag.b, 0u);
    const PackedUlpdu held = store.give(node);
    tags.push_back(held.tag.a);
    node = held.next;
  }
  EXPECT_EQ(tags, (std::vector<uint64_t>{1, 2, 3}));
  EXPECT_EQ(store.used(), 1u);
  EXPECT_EQ(store[other].tag.a, 9u);
}

// What is taken again begins a chain of its own.
TEST(PackStore, NodesAreUsedAgain) {
  PackStore store(2);
  for (uint64_t i = 0; i < 10; ++i) {
    const uint32_t first = store.begin({i, 0});
    EXPECT_EQ(store[first].next, framing::kNone);
    const uint32_t second = store.append(first, {i, 1});
    EXPECT_EQ(store.free(), 0u);
    EXPECT_EQ(store[first].next, second);
    EXPECT_EQ(store[second].next, framing::kNone);
    store.give(first);
    store.give(second);
  }
  EXPECT_EQ(store.free(), 2u);
}

TEST(PackStore, ANodeThatComesBackTwiceIsFound) {
  PackStore store(4);
  const uint32_t first = store.begin({1, 0});
  store.append(first, {1, 1});
  store.validate();
  store.give(first);
  store.validate();
  store.give(first);
  EXPECT_DEATH(store.validate(), "back") << "a ring of free nodes";
}

}  // namespace
}  // namespace rnic::tuf

#include "base/zero_array.hpp"

#include <gtest/gtest.h>
#include <sys/mman.h>
#include <unistd.h>

#include <array>
#include <memory>
#include <vector>

#include "base/prng.hpp"
#include "base/slab.hpp"
#include "base/spsc_ring.hpp"
#include "support/sanitized.hpp"

namespace rnic::base {
namespace {

struct Plain {
  uint64_t number;
  void* pointer;
  bool flag;
};

/// Pages of a piece of memory that the machine backs.
size_t backed_pages(const void* begin, size_t octets) {
  const auto page = static_cast<size_t>(sysconf(_SC_PAGESIZE));
  const auto first = (reinterpret_cast<uintptr_t>(begin) + page - 1) / page * page;
  const size_t pages = octets / page - 1;
  std::vector<unsigned char> backed(pages);
  EXPECT_EQ(mincore(reinterpret_cast<void*>(first), pages * page, backed.data()), 0);
  size_t count = 0;
  for (const unsigned char each : backed) count += each & 1u;
  return count;
}

TEST(ZeroArray, IsZeroAndHasItsSize) {
  ZeroArray<Plain> array(1000);
  EXPECT_EQ(array.size(), 1000u);
  for (size_t i = 0; i < array.size(); ++i) {
    EXPECT_EQ(array[i].number, 0u);
    EXPECT_EQ(array[i].pointer, nullptr);
    EXPECT_FALSE(array[i].flag);
    array[i] = {i, &array, true};
  }
  EXPECT_EQ(array[999].number, 999u);
  EXPECT_EQ(ZeroArray<Plain>(0).size(), 0u);
}

TEST(ZeroArray, IsAlignedAsItsElementsAsk) {
  struct alignas(64) Line {
    uint32_t word;
  };
  struct alignas(4096) Page {
    uint32_t word;
  };
  for (int i = 0; i < 20; ++i) {
    ZeroArray<Line> lines(static_cast<size_t>(i));
    EXPECT_EQ(reinterpret_cast<uintptr_t>(lines.data()) % 64, 0u);
    ZeroArray<Page> pages(2);
    EXPECT_EQ(reinterpret_cast<uintptr_t>(&pages[1]) % 4096, 0u);
    pages[1].word = 7;  // the last element is inside
  }
}

TEST(ZeroArray, MoreThanThereCanBeIsBadAlloc) {
  EXPECT_THROW(ZeroArray<Plain>(SIZE_MAX / 2), std::bad_alloc);
  EXPECT_THROW(ZeroArray<Plain>(size_t{1} << 50), std::bad_alloc);
}

TEST(ZeroArray, NothingIsBackedBeforeItIsWritten) {
  if (test::kSanitized) GTEST_SKIP() << test::kNotMeasured;
  constexpr size_t kOctets = 64 << 20;
  ZeroArray<uint8_t> array(kOctets);
  EXPECT_LE(backed_pages(array.data(), kOctets), 1u);
  array[kOctets / 2] = 1;
  EXPECT_GE(backed_pages(array.data(), kOctets), 1u);
}

TEST(Slab, TouchesWhatIsUsed) {
  struct Large {
    std::array<uint8_t, 4096> octets;
  };
  Slab<Large> slab(10'000);
  const Handle first = slab.emplace();
  const size_t begin = backed_pages(slab.get(first), 4096 * 9'000);
  slab.for_each([](Handle, Large&) {});
  EXPECT_EQ(backed_pages(slab.get(first), 4096 * 9'000), begin) << "nor by going through it";
  EXPECT_EQ(slab.get({5000, 1}), nullptr);
  EXPECT_LE(backed_pages(slab.get(first), 4096 * 9'000), begin + 1) << "its place was looked at";
}

TEST(FreeNumbers, OneThatComesBackTwiceIsFound) {
  FreeNumbers free(5);
  for (int i = 0; i < 3; ++i) free.take();
  free.give(1);
  free.validate();
  free.give(1);
  EXPECT_DEATH(free.validate(), "there");
  free.take();
  free.validate();
  free.give(4);
  EXPECT_DEATH(free.validate(), "fresh_") << "it was never given out";
}

TEST(FreeNumbers, TheLastOneBackElseTheLowestFreshOne) {
  FreeNumbers free(5);
  std::vector<bool> out(5, false);
  std::vector<uint32_t> back;  // as a stack
  uint32_t fresh = 0;
  Prng random(17);
  for (int step = 0; step < 2000; ++step) {
    ASSERT_EQ(free.empty(), free.size() == 0);
    ASSERT_EQ(free.size(), back.size() + (5 - fresh));
    ASSERT_EQ(free.fresh(), fresh);
    if (!free.empty() && random.below(2) == 0) {
      const uint32_t expected = back.empty() ? fresh++ : back.back();
      if (!back.empty()) back.pop_back();
      ASSERT_EQ(free.next(), expected);
      ASSERT_EQ(free.take(), expected);
      ASSERT_FALSE(out[expected]);
      out[expected] = true;
    } else {
      const auto number = static_cast<uint32_t>(random.below(5));
      if (!out[number]) continue;
      out[number] = false;
      free.give(number);
      back.push_back(number);
    }
  }
}

TEST(SpscRing, WhatIsLeftIsDestroyed) {
  const auto watched = std::make_shared<int>(1);
  {
    SpscRing<std::shared_ptr<int>> ring(4);
    for (int i = 0; i < 4; ++i) EXPECT_TRUE(ring.push(watched));
    EXPECT_FALSE(ring.push(watched));
    std::shared_ptr<int> out;
    EXPECT_TRUE(ring.pop(out));
    ring.pop_front();
    EXPECT_EQ(watched.use_count(), 4);  // ours, `out`, two in the ring
    EXPECT_TRUE(ring.push(watched));    // beyond the end of the memory
  }
  EXPECT_EQ(watched.use_count(), 1);
}

}  // namespace
}  // namespace rnic::base

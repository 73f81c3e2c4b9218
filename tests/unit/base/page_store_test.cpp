#include "base/page_store.hpp"

#include <gtest/gtest.h>

#include <cstring>
#include <iterator>
#include <map>
#include <vector>

#include "base/page_array.hpp"
#include "base/prng.hpp"

namespace rnic::base {
namespace {

using Page = PageStore::Page;

// Each run is filled with octets of its own, which nobody else's changes.
class Runs {
 public:
  explicit Runs(PageStore& store) : store_(store) {}
  void take(size_t pages, uint8_t octet) {
    Page* const run = store_.take(pages);
    EXPECT_EQ(reinterpret_cast<uintptr_t>(run) % PageStore::kPage, 0u);
    std::memset(run, octet, pages * sizeof(Page));
    EXPECT_TRUE(held_.emplace(run, Run{pages, octet}).second);
  }
  void give(size_t which) {
    const auto at = std::next(held_.begin(), static_cast<ptrdiff_t>(which % held_.size()));
    const std::byte expected{at->second.octet};
    for (size_t page = 0; page < at->second.pages; ++page) {
      ASSERT_EQ(at->first[page].octets[0], expected);
      ASSERT_EQ(at->first[page].octets[PageStore::kPage - 1], expected);
    }
    store_.give(at->first);
    held_.erase(at);
  }
  [[nodiscard]] bool empty() const { return held_.empty(); }

 private:
  struct Run {
    size_t pages;
    uint8_t octet;
  };
  PageStore& store_;
  std::map<Page*, Run> held_;
};

TEST(PageStore, NoRunReachesAnother) {
  PageStore store;
  Runs runs(store);
  Prng random(7);
  for (uint32_t i = 0; i < 2000; ++i) {
    if (runs.empty() || random.below(5) < 3) {
      runs.take(1 + random.below(PageStore::kRunMax), static_cast<uint8_t>(i));
    } else {
      runs.give(random.below(1000));
    }
  }
  EXPECT_GT(store.blocks(), 1u);
  while (!runs.empty()) runs.give(random.below(1000));
  EXPECT_EQ(store.blocks(), 0u);
}

TEST(PageStore, RunsStandSideBySideAndFillWhatCameBack) {
  PageStore store;
  Page* const first = store.take(3);
  Page* const second = store.take(2);
  Page* const third = store.take(1);
  EXPECT_EQ(second, first + 3);
  EXPECT_EQ(third, second + 2);
  store.give(second);
  Page* const larger = store.take(3);
  EXPECT_EQ(larger, third + 1);
  Page* const fitting = store.take(2);
  EXPECT_EQ(fitting, second);
  for (const Page* run : {first, third, larger, fitting}) store.give(run);
}

TEST(PageStore, AFullBlockIsFollowedByAnotherAndAnEmptyOneIsGivenBack) {
  PageStore store;
  constexpr size_t kRuns = PageStore::kBlockPages / PageStore::kRunMax;
  std::vector<Page*> held;
  for (size_t i = 0; i < kRuns; ++i) held.push_back(store.take(PageStore::kRunMax));
  EXPECT_EQ(store.blocks(), 1u);
  Page* const more = store.take(1);
  EXPECT_EQ(store.blocks(), 2u);
  for (Page* const run : held) store.give(run);
  EXPECT_EQ(store.blocks(), 1u);
  store.give(more);
  EXPECT_EQ(store.blocks(), 0u);
}

TEST(PageArray, TakesWhatIsTooLongForAStoreFromTheSystem) {
  PageStore store;
  constexpr size_t kMost = PageStore::kRunMax * PageStore::kPage;
  PageArray<std::byte> fits(kMost, &store);
  EXPECT_EQ(store.blocks(), 1u);
  EXPECT_EQ(fits.store(), &store);
  fits.data()[kMost - 1] = std::byte{1};
  fits = PageArray<std::byte>(kMost + 1, &store);
  EXPECT_EQ(store.blocks(), 0u);
  EXPECT_EQ(fits.store(), nullptr);
  fits.data()[kMost] = std::byte{1};
  const PageArray<std::byte> none(0, &store);
  EXPECT_EQ(none.data(), nullptr);
  EXPECT_EQ(store.blocks(), 0u);
}

}  // namespace
}  // namespace rnic::base

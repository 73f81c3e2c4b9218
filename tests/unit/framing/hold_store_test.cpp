// Octets that are committed and cannot be placed yet: pages, ranges, the reserve.
#include "framing/hold_store.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <bit>
#include <utility>

#include "framing/framing.hpp"
#include "framing/placed_list.hpp"
#include "support/mpa_fakes.hpp"

namespace rnic::framing {
namespace {

using test::numbered_ulpdu;
using test::Octets;

TEST(HoldStore, PagesMergePiecesAndCountOctets) {
  HoldStore store(64 * 2048);
  HeldOctets held(store, 1u << 20);
  const Octets data = numbered_ulpdu(1, 10000);
  const auto part = [&](uint64_t from, uint64_t to) {
    return base::ByteView(data).subspan(from, to - from);
  };
  held.add({3000, 5000}, part(3000, 5000), false, kUnlocated);
  held.add({7000, 9000}, part(7000, 9000), false, 8000);
  EXPECT_EQ(held.octets(), 4000u);
  EXPECT_EQ(held.containing(6000), kNone);
  const uint32_t node = held.add({5000, 7000}, part(5000, 7000), false, kUnlocated);
  EXPECT_EQ(held.node(node).range, (base::Range{3000, 9000}));
  EXPECT_EQ(held.node(node).next_pdu, 8000u);
  const uint8_t* whole = held.contiguous({3000, 9000});
  EXPECT_TRUE(std::equal(whole, whole + 6000, data.begin() + 3000));
  const uint32_t behind = held.erase(node, {4000, 8000}, 8000);
  EXPECT_EQ(held.node(node).range, (base::Range{3000, 4000}));
  EXPECT_EQ(held.node(behind).range, (base::Range{8000, 9000}));
  EXPECT_EQ(held.octet(8500), data[8500]);
  EXPECT_EQ(store.octets(), 2000u);
  held.clear();
  EXPECT_EQ(store.octets(), 0u);
  EXPECT_EQ(store.general_free(), 64u);
}

// Octets of several windows are read where they are when their pages lie in a row, as those of
// windows that came in a row do, also when the pages have been in use before; else they are copied.
TEST(HeldOctets, WindowsInARowAreReadWhereTheyAre) {
  constexpr uint64_t kPage = HoldStore::kPageSize;
  HoldStore store(64 * kPage);
  HeldOctets held(store, 1u << 20);
  const Octets data = numbered_ulpdu(1, 4 * kPage);
  const auto hold = [&](uint64_t from, uint64_t to) {
    held.add({from, to}, base::ByteView(data).subspan(from, to - from), false, kUnlocated);
  };
  for (int time = 0; time < 3; ++time) {
    SCOPED_TRACE(time);
    hold(100, 1500);
    for (uint64_t at = 1500; at < 4 * kPage - 100; at += 700) {
      hold(at, std::min<uint64_t>(at + 700, 4 * kPage - 100));
    }
    const uint8_t* whole = held.contiguous({200, 3 * kPage + 10});
    EXPECT_NE(whole, store.scratch());
    EXPECT_TRUE(std::equal(whole, whole + 3 * kPage + 10 - 200, data.begin() + 200));
    for (uint64_t at = 100; at < 4 * kPage - 100; at += 1000) {  // as they are placed
      held.erase(held.containing(at), {at, std::min<uint64_t>(at + 1000, 4 * kPage - 100)}, at);
    }
    EXPECT_EQ(store.general_free(), 64u);
  }
  hold(kPage, 2 * kPage);
  hold(0, kPage);
  hold(2 * kPage, 3 * kPage);
  const uint8_t* whole = held.contiguous({10, 3 * kPage});
  EXPECT_EQ(whole, store.scratch());
  EXPECT_TRUE(std::equal(whole, whole + 3 * kPage - 10, data.begin() + 10));
  const uint8_t* last = held.contiguous({2 * kPage, 2 * kPage + 1});
  EXPECT_NE(last, store.scratch());
  EXPECT_EQ(*last, data[2 * kPage]);
}

// One descriptor of a placed FPDU for 256 octets of hold space, within bounds, beside the reserve;
// and what a store will ask for is told before.
TEST(HoldStore, MemoryIsToldToTheOctet) {
  for (const auto& [octets, placed] : {std::pair<uint64_t, uint32_t>{0, 4096},
                                       {1u << 20, 4096},
                                       {4u << 20, 16384},
                                       {32u << 20, 65536}}) {
    HoldStore store(octets);
    EXPECT_EQ(store.placed().free(), placed + HoldStore::kReserveNodes);
    const uint64_t pages = store.general_free() + HoldStore::kReservePages;
    EXPECT_EQ(pages, octets / HoldStore::kPageSize + HoldStore::kReservePages);
    constexpr uint64_t kPageEntry = 24;  // window, session, link, use, and whose it is
    EXPECT_EQ(hold_store_octets(octets), sizeof(HoldStore) + kPduSizeMax +
                                             pages * (kPageEntry + HoldStore::kPageSize) +
                                             std::bit_ceil(pages) * sizeof(uint32_t) +
                                             Pool<HeldRange>::octets_for(store.ranges().free()) +
                                             Pool<PlacedPdu>::octets_for(store.placed().free()));
  }
}

// A store has room for every octet that it is made for, also where they begin a page of their own.
TEST(HoldStore, TheLastOctetHasAPageToo) {
  constexpr uint32_t kPage = HoldStore::kPageSize;
  for (const uint32_t octets : {1u, kPage - 1, kPage, kPage + 1, 2 * kPage, 2 * kPage + 1}) {
    HoldStore store(octets);
    HeldOctets held(store, octets);
    HeldOctets other(store, octets);
    const Octets data(octets, 7);
    ASSERT_TRUE(held.has_room({4 * kPage, 4 * kPage + octets}, false)) << octets;
    EXPECT_NE(held.add({4 * kPage, 4 * kPage + octets}, data, false, kUnlocated), kNone);
    EXPECT_EQ(store.octets(), octets);
    EXPECT_FALSE(other.has_room({0, 1}, false)) << octets << ": and no page more than that";
  }
}

// A page is found by a hash and not by a search through all pages: with all the hold space of many
// sessions in use this would take minutes otherwise.
TEST(HoldStore, EachOfManyPagesIsFoundAtOnce) {
  constexpr uint32_t kPages = 32768, kSessions = 16;
  HoldStore store(uint64_t{kPages} * HoldStore::kPageSize);
  std::vector<const uint8_t*> pages;
  const auto session = [](uint32_t i) { return 1 + i % kSessions; };
  for (uint32_t i = 0; i < kPages; ++i) {
    pages.push_back(store.take(session(i), i / kSessions, true, false));
    ASSERT_NE(pages.back(), nullptr);
  }
  EXPECT_EQ(store.take(1, kPages, true, false), nullptr);
  uint32_t wrong = 0;
  for (uint32_t round = 0; round < 32; ++round) {
    for (uint32_t i = 0; i < kPages; ++i) {
      if (store.find(session(i), i / kSessions) != pages[i]) ++wrong;
    }
  }
  EXPECT_EQ(wrong, 0u);
}

// Descriptors run out before octets do when what is held is in small pieces: the last ones are for
// what comes at the delivery point. An added piece may take two.
TEST(HoldStore, TheLastDescriptorsAreKeptBack) {
  constexpr uint32_t kPage = HoldStore::kPageSize;
  HoldStore store(8 * kPage);
  const Octets one(1, 7);
  std::vector<std::unique_ptr<HeldOctets>> sessions;
  for (uint32_t n = 0;; ++n) {  // octets that do not touch, 200 in a page of each session
    if (n % 200 == 0) sessions.push_back(std::make_unique<HeldOctets>(store, kPage));
    const uint64_t at = 2 * (n % 200);
    if (!sessions.back()->has_room({at, at + 1}, false)) break;
    ASSERT_NE(sessions.back()->add({at, at + 1}, one, false, kUnlocated), kNone);
  }
  EXPECT_GT(store.general_free(), 0u);
  EXPECT_EQ(store.ranges().free(), HoldStore::kReserveNodes + 2);
}

TEST(HoldStore, ReserveIsLentToOneSession) {
  HoldStore store(0);
  HeldOctets first(store, 0), second(store, 0);
  const Octets data(66'064, 1);
  EXPECT_FALSE(first.has_room({100, 200}, false));
  ASSERT_TRUE(first.has_room({2047, 2047 + data.size()}, true));
  EXPECT_NE(first.add({2047, 2047 + data.size()}, data, true, 0), kNone);
  EXPECT_FALSE(second.has_room({0, 10}, true));
  first.clear();
  EXPECT_TRUE(second.has_room({0, 10}, true));
}

TEST(HeldOctets, AreSortedApartAndCounted) {
  HoldStore store(64 * 2048);
  HeldOctets held(store, 1u << 20);
  const Octets data(3000, 1);
  const uint32_t first = held.add({1000, 4000}, data, false, kUnlocated);
  const uint32_t second = held.add({5000, 8000}, data, false, kUnlocated);
  held.validate();
  store.validate();
  const auto dies_with = [&](uint32_t node, base::Range range, const char* why) {
    const base::Range before = std::exchange(held.node(node).range, range);
    EXPECT_DEATH(held.validate(), why);
    held.node(node).range = before;
  };
  dies_with(first, {1000, 1000}, "empty");
  dies_with(second, {4000, 8000}, "range.begin");
  dies_with(first, {1000, 3999}, "in_window");
  dies_with(second, {500, 700}, "range.begin");
  dies_with(second, {5000, 8192 + 1}, "in_window");
  std::swap(held.node(first).prev, held.node(second).prev);
  EXPECT_DEATH(held.validate(), "prev");
  std::swap(held.node(first).prev, held.node(second).prev);
  held.erase(first, {2000, 3000}, kUnlocated);
  held.validate();
  store.validate();
}

TEST(HoldStore, CountsItsPagesAnew) {
  HoldStore store(64 * 2048);
  store.take(1, 7, true, false);
  EXPECT_DEATH(store.validate(), "general_used_") << "a page of which nothing is in use";
  store.add_use(1, 7, 10);
  store.validate();
  EXPECT_EQ(store.use(1, 7), 10u);
  EXPECT_EQ(store.use(1, 8), 0u);
  store.add_use(1, 7, 2048);
  EXPECT_DEATH(store.validate(), "kPage");
}

TEST(PlacedList, IsSortedApartAndCounted) {
  HoldStore store(64 * 2048);
  PlacedList placed(store, 2);
  placed.validate();
  placed.insert({.begin = 300, .end = 400}, true);
  placed.insert({.begin = 100, .end = 200}, false);
  placed.validate();
  PlacedPdu& front = *placed.front();
  front.end = 301;
  EXPECT_DEATH(placed.validate(), "end <= pdu.begin");
  front.end = 100;
  EXPECT_DEATH(placed.validate(), "pdu.begin < pdu.end");
  front.end = 200;
  front.early = true;
  EXPECT_DEATH(placed.validate(), "early_");
  front.early = false;
  placed.pop_front();
  placed.validate();
}

}  // namespace
}  // namespace rnic::framing

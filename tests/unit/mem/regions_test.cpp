// What a region is made of, and what becomes of its name.

#include <gtest/gtest.h>

#include <array>
#include <numeric>
#include <set>
#include <string>
#include <vector>

#include "mem/mem.hpp"

namespace rnic::mem {
namespace {

constexpr uint32_t kPd = 7;
constexpr uint64_t kStream = 42;

class Regions : public ::testing::Test {
 protected:
  RegionSpec spec(AccessSet rights = {}) {
    return {.address = memory.data(), .length = memory.size(), .pd = kPd, .rights = rights};
  }
  /// A region of several pieces of the memory: first octet and length of each.
  RegionSpec in_pieces(std::initializer_list<std::array<size_t, 2>> all, AccessSet rights = {}) {
    pieces.clear();
    for (const auto& [at, length] : all) pieces.emplace_back(memory.data() + at, length);
    return {.pd = kPd, .rights = rights, .pieces = pieces};
  }
  AccessGrant access(Stag stag, uint64_t to, uint64_t length, AccessSet rights = {}) const {
    return table.access({stag, to, length, rights, kPd, kStream});
  }
  /// The places in memory of `length` octets from `to`, found run by run.
  std::vector<size_t> places(Stag stag, uint64_t to, uint64_t length) const {
    std::vector<size_t> found;
    while (length != 0) {
      const AccessGrant grant = access(stag, to, length);
      EXPECT_EQ(grant.fault, AccessFault::None);
      EXPECT_GT(grant.run, 0u);
      EXPECT_LE(grant.run, length);
      if (grant.run == 0 || grant.run > length) return found;
      for (uint32_t i = 0; i < grant.run; ++i) {
        found.push_back(static_cast<size_t>(grant.at - memory.data()) + i);
      }
      to += grant.run;
      length -= grant.run;
    }
    return found;
  }
  ErrorCode refusal(const RegionSpec& bad) {
    const auto stag = table.add(bad);
    EXPECT_FALSE(stag.has_value());
    return stag ? ErrorCode{} : stag.error().code;
  }

  std::array<uint8_t, 256> memory{};
  std::vector<base::ByteSpan> pieces;
  StagTable table{{.stags = 4, .max_pieces = 8}, {1, 2}};
};

// The owner says where the offsets begin and how far they go; nothing beside that range is the
// STag's, and nothing of it after it was revoked.
TEST_F(Regions, TheOwnerSetsTheRangeOfOffsets_DDP_8_3_01) {
  for (const uint64_t first : {uint64_t{0}, uint64_t{1}, uint64_t{1} << 63, UINT64_MAX - 99}) {
    RegionSpec wanted = spec();
    wanted.length = 100;
    wanted.offset = first;
    const Stag stag = table.add(wanted).value();
    EXPECT_EQ(access(stag, first, 100).at, memory.data());
    EXPECT_EQ(access(stag, first + 99, 1).at, memory.data() + 99);
    EXPECT_NE(access(stag, first + 100, 1).fault, AccessFault::None);
    EXPECT_NE(access(stag, first - 1, 1).fault, AccessFault::None);
    ASSERT_TRUE(table.remove(stag).has_value());
    EXPECT_EQ(access(stag, first, 1).fault, AccessFault::InvalidStag);
  }
  RegionSpec beyond = spec();
  beyond.offset = UINT64_MAX - 254;
  EXPECT_EQ(refusal(beyond), ErrorCode::InvalidArgument) << "its last offset would be 2^64";
}

// A region of no octets has a name, and no access that asks for an octet fits it.
TEST_F(Regions, ARegionMayBeEmpty) {
  for (uint8_t* const address : {memory.data(), static_cast<uint8_t*>(nullptr)}) {
    const auto stag = table.add({.address = address, .length = 0, .pd = kPd});
    ASSERT_TRUE(stag.has_value());
    const auto to = reinterpret_cast<uint64_t>(address);
    EXPECT_EQ(access(*stag, to, 0).fault, AccessFault::None);
    for (const uint64_t near : {to - 1, to, to + 1}) {
      EXPECT_EQ(access(*stag, near, 1).fault, AccessFault::Bounds);
    }
    EXPECT_TRUE(table.remove(*stag).has_value());
  }
}

// Each part of a region of several pieces goes to the octets that the pieces put there, one run of
// them after the other.
TEST_F(Regions, PiecesAreOneRangeOfOffsets) {
  const Stag stag = table.add(in_pieces({{200, 3}, {0, 1}, {50, 0}, {100, 6}})).value();
  const std::vector<size_t> all{200, 201, 202, 0, 100, 101, 102, 103, 104, 105};
  for (uint64_t to = 0; to < all.size(); ++to) {
    for (uint64_t length = 1; to + length <= all.size(); ++length) {
      const auto first = all.begin() + static_cast<ptrdiff_t>(to);
      EXPECT_EQ(places(stag, to, length),
                std::vector<size_t>(first, first + static_cast<ptrdiff_t>(length)))
          << to << " " << length;
    }
    EXPECT_EQ(access(stag, to, all.size() - to + 1).fault, AccessFault::Bounds);
  }
  EXPECT_EQ(access(stag, all.size(), 1).fault, AccessFault::Bounds);
  EXPECT_EQ(access(stag, all.size(), 0).fault, AccessFault::None);
}

TEST_F(Regions, PiecesMayHaveAnOffsetAndOverlap) {
  RegionSpec wanted = in_pieces({{10, 4}, {10, 4}});
  wanted.offset = 1000;
  const Stag stag = table.add(wanted).value();
  EXPECT_EQ(places(stag, 1002, 4), (std::vector<size_t>{12, 13, 10, 11}));
  EXPECT_EQ(access(stag, 999, 1).fault, AccessFault::Bounds);
  EXPECT_EQ(access(stag, 1008, 1).fault, AccessFault::Bounds);
}

// Pieces cost memory beside the table, and have a limit of their own; what is one piece costs none.
TEST_F(Regions, PiecesHaveALimit_BUG_10) {
  const Stag one = table.add(in_pieces({{0, 0}, {7, 5}})).value();
  EXPECT_EQ(table.pieces(), 0u);
  EXPECT_EQ(places(one, 1, 2), (std::vector<size_t>{8, 9}));
  const Stag six = table.add(in_pieces({{0, 1}, {2, 1}, {4, 1}, {6, 1}, {8, 1}, {10, 1}})).value();
  EXPECT_EQ(table.pieces(), 6u);
  EXPECT_EQ(refusal(in_pieces({{0, 1}, {2, 1}, {4, 1}})), ErrorCode::ResourceExhausted);
  EXPECT_EQ(table.pieces(), 6u);
  EXPECT_EQ(table.live(), 2u);
  const Stag two = table.add(in_pieces({{0, 1}, {2, 1}})).value();
  ASSERT_TRUE(table.remove(six).has_value());
  EXPECT_EQ(table.pieces(), 2u);
  EXPECT_EQ(places(two, 0, 2), (std::vector<size_t>{0, 2})) << "the others stay where they are";
  ASSERT_TRUE(table.remove(two).has_value());
  EXPECT_EQ(table.pieces(), 0u);
}

TEST_F(Regions, SenselessPiecesAreRefused_BUG_10) {
  RegionSpec both = in_pieces({{0, 1}, {2, 1}});
  both.address = memory.data();
  EXPECT_EQ(refusal(both), ErrorCode::InvalidArgument);
  pieces = {{memory.data(), 1}, {static_cast<uint8_t*>(nullptr), 1}};
  EXPECT_EQ(refusal({.pd = kPd, .pieces = pieces}), ErrorCode::InvalidArgument);
  pieces = {{memory.data(), SIZE_MAX}, {memory.data(), 1}};
  EXPECT_EQ(refusal({.pd = kPd, .pieces = pieces}), ErrorCode::InvalidArgument);
  auto* const low = reinterpret_cast<uint8_t*>(4096);
  pieces = {{low, SIZE_MAX - 4096}, {low, SIZE_MAX - 4096}};
  EXPECT_EQ(refusal({.pd = kPd, .pieces = pieces}), ErrorCode::InvalidArgument) << "the sum";
  EXPECT_EQ(table.live(), 0u);
  EXPECT_EQ(table.pieces(), 0u);
}

// The owner may choose the key; a slot that was used before never comes back with the STag that it
// had, whatever key is chosen.
TEST_F(Regions, TheOwnerMayChooseTheKey) {
  StagTable one(1, {3, 4});
  Stag last{};
  for (int i = 0; i < 300; ++i) {
    RegionSpec wanted = spec();
    wanted.key = 0x5a;
    const Stag stag = one.add(wanted).value();
    EXPECT_EQ(stag.key(), 0x5a);
    EXPECT_NE(stag, last);
    last = stag;
    ASSERT_TRUE(one.remove(stag).has_value());
  }
}

// Registered anew, a region has the index that it had and another key; its former STag is dead from
// then on, and rights, domain, memory and offsets are the new ones.
TEST_F(Regions, RegisteredAnewUnderAnotherKey) {
  const Stag before = table.add(spec(Access::RemoteWrite)).value();
  const auto to = reinterpret_cast<uint64_t>(memory.data());
  RegionSpec wanted = spec(Access::RemoteRead);
  wanted.offset = 16;
  wanted.length = 10;
  std::set<uint8_t> keys;
  Stag stag = before;
  for (int i = 0; i < 200; ++i) {
    const Stag renamed = table.change(stag, wanted).value();
    EXPECT_EQ(renamed.index(), before.index());
    EXPECT_NE(renamed.key(), stag.key());
    EXPECT_EQ(access(stag, 16, 1).fault, AccessFault::InvalidStag);
    EXPECT_EQ(access(renamed, 16, 10, Access::RemoteRead).at, memory.data());
    keys.insert(renamed.key());
    stag = renamed;
  }
  EXPECT_GT(keys.size(), 100u) << "nobody guesses them";
  EXPECT_EQ(access(before, to, 1).fault, AccessFault::InvalidStag);
  EXPECT_EQ(access(stag, 26, 1).fault, AccessFault::Bounds);
  EXPECT_EQ(access(stag, 16, 1, Access::RemoteWrite).fault, AccessFault::Rights);
  wanted.pd = kPd + 1;
  wanted.key = static_cast<uint8_t>(stag.key() + 1);
  const Stag moved = table.change(stag, wanted).value();
  EXPECT_EQ(moved.key(), *wanted.key);
  EXPECT_EQ(access(moved, 16, 1).fault, AccessFault::NotAssociated);
  EXPECT_EQ(table.pd_of(moved), kPd + 1);
  EXPECT_EQ(table.live(), 1u);
  EXPECT_FALSE(table.remove(stag).has_value());
  EXPECT_TRUE(table.remove(moved).has_value());
}

// What cannot be registered anew is as it was before.
TEST_F(Regions, AFailedChangeLeavesTheRegionAsItWas_BUG_10) {
  const Stag stag = table.add(in_pieces({{0, 4}, {8, 4}}, Access::RemoteWrite)).value();
  RegionSpec same_key = spec();
  same_key.key = stag.key();
  RegionSpec unknown_right = spec(static_cast<Access>(1u << 31));
  RegionSpec for_everybody = spec(Access::RemoteInvalidate);
  std::vector<base::ByteSpan> many(9, {memory.data(), 1});
  RegionSpec too_many{.pd = kPd, .pieces = many};
  for (const RegionSpec& bad : {same_key, unknown_right, for_everybody, too_many}) {
    EXPECT_FALSE(table.change(stag, bad).has_value());
    EXPECT_EQ(places(stag, 2, 4), (std::vector<size_t>{2, 3, 8, 9}));
    EXPECT_EQ(access(stag, 0, 8, Access::RemoteWrite).fault, AccessFault::None);
    EXPECT_EQ(table.pieces(), 2u);
  }
  EXPECT_EQ(table.change(Stag{stag.value ^ 1}, spec()).error().code, ErrorCode::NotFound);
  const Stag plain = table.change(stag, spec()).value();
  EXPECT_EQ(table.pieces(), 0u);
  EXPECT_TRUE(table.remove(plain).has_value());
}

TEST_F(Regions, ARegionTellsWhatItIs) {
  RegionSpec wanted = spec(Access::LocalWrite);
  wanted.stream = kStream;
  wanted.offset = 5;
  std::vector<base::ByteSpan> found;
  const Stag stag = table.add(wanted).value();
  const auto told = table.describe(stag, found);
  ASSERT_TRUE(told.has_value());
  EXPECT_EQ(told->address, memory.data());
  EXPECT_EQ(told->length, memory.size());
  EXPECT_EQ(told->pd, kPd);
  EXPECT_EQ(told->rights, Access::LocalWrite | Access::LocalRead);
  EXPECT_EQ(told->offset, 5u);
  EXPECT_EQ(told->stream, kStream);
  EXPECT_TRUE(told->pieces.empty());
  const Stag scattered = table.add(in_pieces({{0, 4}, {8, 4}})).value();
  const auto parts = table.describe(scattered, found);
  ASSERT_TRUE(parts.has_value() && parts->pieces.size() == 2);
  EXPECT_EQ(parts->address, nullptr);
  EXPECT_EQ(parts->stream, std::nullopt);
  EXPECT_EQ(parts->pieces[1].data(), memory.data() + 8);
  EXPECT_EQ(parts->pieces[1].size(), 4u);
  EXPECT_FALSE(table.describe(Stag{stag.value ^ 1}, found).has_value());
}

// --- who may use it ---

// Of one domain, for reading, writing, atomics and invalidation alike.
// RDMAP-8.1-01: RFC 5040 s.8.1.1(1)
TEST_F(Regions, AnotherDomainCanDoNothing_SEC_6_1_1_02) {
  RegionSpec wanted = spec(AccessSet::all());
  wanted.stream = kStream;
  const Stag stag = table.add(wanted).value();
  const auto to = reinterpret_cast<uint64_t>(memory.data());
  for (const Access right : {Access::RemoteWrite, Access::RemoteRead, Access::RemoteAtomic,
                             Access::LocalRead, Access::LocalWrite}) {
    EXPECT_EQ(table.access({stag, to, 8, right, kPd + 1, kStream}).fault,
              AccessFault::NotAssociated);
  }
  EXPECT_EQ(table.invalidate(stag, kPd + 1, kStream), AccessFault::NotAssociated);
  EXPECT_EQ(table.invalidate_local(stag, kPd + 1, kStream), AccessFault::NotAssociated);
  EXPECT_EQ(access(stag, to, 8, AccessSet::all()).fault, AccessFault::None);
}

// Of one stream, although others are of the same domain; and streams that come and go have numbers
// that none before had.
// RDMAP-8.1-01: s.8.1.1(2)
TEST_F(Regions, AnotherStreamOfTheDomainCanDoNothing_SEC_6_1_1_03) {
  const uint64_t first = table.new_stream();
  const uint64_t second = table.new_stream();
  EXPECT_NE(first, second);
  RegionSpec wanted = spec(AccessSet::all());
  wanted.stream = first;
  const Stag stag = table.add(wanted).value();
  const auto to = reinterpret_cast<uint64_t>(memory.data());
  for (const Access right : {Access::RemoteWrite, Access::RemoteRead, Access::RemoteAtomic,
                             Access::LocalRead, Access::LocalWrite}) {
    EXPECT_EQ(table.access({stag, to, 8, right, kPd, second}).fault, AccessFault::NotAssociated);
    EXPECT_EQ(table.access({stag, to, 8, right, kPd, first}).fault, AccessFault::None);
  }
  EXPECT_EQ(table.invalidate(stag, kPd, second), AccessFault::NotAssociated);
  EXPECT_EQ(table.invalidate_local(stag, kPd, second), AccessFault::NotAssociated);
  EXPECT_EQ(table.invalidate(stag, kPd, first), AccessFault::None);
}

// What all streams of a domain share no peer can invalidate: the right for it is refused to a
// region without a stream of its own.
// RDMAP-8.1-01: s.8.1.1(7)
TEST_F(Regions, NoPeerInvalidatesWhatIsShared_SEC_6_4_5_01) {
  EXPECT_EQ(refusal(spec(AccessSet::all())), ErrorCode::InvalidArgument);
  const AccessSet most = AccessSet::all().without(Access::RemoteInvalidate);
  const Stag shared = table.add(spec(most)).value();
  for (const uint64_t stream : {uint64_t{0}, kStream, UINT64_MAX}) {
    EXPECT_NE(table.invalidate(shared, kPd, stream), AccessFault::None);
  }
  EXPECT_EQ(access(shared, reinterpret_cast<uint64_t>(memory.data()), 1).fault, AccessFault::None);
  EXPECT_EQ(table.change(shared, spec(AccessSet::all())).error().code, ErrorCode::InvalidArgument);
}

// --- names ---

// RFC 5040 s.8.1.1 (8): over many runs, each with a secret of its own, an STag has each bit as
// often set as not, so that they lie over the whole range; the first tells nothing of the second;
// and one that somebody makes up names nothing.
// RDMAP-8.1-01: s.8.1.1(8)
TEST(StagNamesTest, LieOverTheWholeRange_SEC_6_1_1_04) {
  constexpr uint64_t kRuns = 4000;
  constexpr uint32_t kLimit = (1u << 16) - 1;  // 16 bits of slot, 8 above them and 8 of key
  std::array<uint64_t, 32> set{};
  std::array<uint64_t, 32> differ{};
  std::array<uint64_t, 16> sixteenths{};
  std::set<uint32_t> values;
  for (uint64_t run = 0; run < kRuns; ++run) {
    StagNames names(kLimit, {run * 0x9e3779b97f4a7c15u, run ^ 7});
    const uint32_t first = names.take({}).value;
    const uint32_t second = names.take({}).value;
    for (uint32_t bit = 0; bit < 32; ++bit) {
      set[bit] += first >> bit & 1;
      differ[bit] += (first ^ second) >> bit & 1;
    }
    ++sixteenths[first >> 28];
    values.insert(first);
  }
  // Six standard deviations of a fair coin: sqrt(4000) / 2 * 6 = 190.
  for (uint32_t bit = 0; bit < 32; ++bit) {
    EXPECT_NEAR(static_cast<double>(set[bit]), kRuns / 2.0, 190) << "bit " << bit;
    EXPECT_NEAR(static_cast<double>(differ[bit]), kRuns / 2.0, 190) << "bit " << bit;
  }
  for (const uint64_t count : sixteenths) {
    EXPECT_NEAR(static_cast<double>(count), kRuns / 16.0, 92);  // 6 * sqrt(4000 * 15 / 256)
  }
  EXPECT_GE(values.size(), kRuns - 8);
}

// The same within one run: as regions come and go, the STags that they get are spread as well, and
// no two slots share one.
TEST(StagNamesTest, AreSpreadAsTheyComeAndGo_SEC_6_1_1_04) {
  StagNames names(64, {5, 6});
  std::vector<Stag> held;
  for (int i = 0; i < 32; ++i) held.push_back(names.take({}));
  std::set<uint32_t> values;
  std::array<int, 32> set{};
  constexpr int kTurns = 8000;
  for (int i = 0; i < kTurns; ++i) {
    Stag& oldest = held[static_cast<size_t>(i) % held.size()];
    names.give_back(oldest);
    oldest = names.take({});
    values.insert(oldest.value);
    for (uint32_t bit = 0; bit < 32; ++bit) set[bit] += static_cast<int>(oldest.value >> bit & 1);
    std::set<uint32_t> slots;
    for (const Stag stag : held) slots.insert(names.slot_of(stag));
    ASSERT_EQ(slots.size(), held.size());
  }
  EXPECT_GT(values.size(), kTurns * 99u / 100);
  for (uint32_t bit = 0; bit < 32; ++bit) {
    if (bit >= 8 && bit < 15) continue;  // the slot's number: 1 .. 64 is no power of two
    EXPECT_NEAR(set[bit], kTurns / 2, 270) << "bit " << bit;
  }
}

// As long as others are free, a slot that was given back is none of the next.
TEST(StagNamesTest, AFreedOneIsUsedAgainAsLateAsPossible_SEC_6_1_1_05) {
  constexpr uint32_t kSlots = 100;
  StagNames names(kSlots, {8, 9});
  std::vector<Stag> all;
  for (uint32_t i = 0; i < kSlots; ++i) all.push_back(names.take({}));
  EXPECT_TRUE(names.empty());
  for (const Stag stag : all) names.give_back(stag);
  EXPECT_EQ(names.live(), 0u);
  for (const Stag stag : all) {
    const Stag next = names.take({});
    EXPECT_EQ(names.slot_of(next), names.slot_of(stag)) << "first given back, first taken";
    EXPECT_NE(next, stag);
    EXPECT_NE(next.index(), stag.index()) << "also where the owner chooses the key";
  }
}

// A table of 100,000 finds each of them in its own place, and costs the machine what it says.
TEST(StagTableOfMany, EachIsFoundWhereItIs) {
  constexpr uint32_t kMany = 100'000;
  StagTable table(kMany, {1, 2});
  std::vector<uint8_t> memory(kMany);
  std::vector<Stag> stags;
  stags.reserve(kMany);
  for (uint32_t i = 0; i < kMany; ++i) {
    const RegionSpec octet{.address = &memory[i], .length = 1, .pd = kPd, .offset = 0};
    stags.push_back(table.add(octet).value());
  }
  EXPECT_EQ(table.live(), kMany);
  for (uint32_t i = 0; i < kMany; ++i) {
    ASSERT_EQ(table.access({stags[i], 0, 1, {}, kPd, kStream}).at, &memory[i]);
  }
  for (uint32_t i = 0; i < kMany; i += 2) ASSERT_TRUE(table.remove(stags[i]).has_value());
  for (uint32_t i = 0; i < kMany; ++i) {
    ASSERT_EQ(table.access({stags[i], 0, 1, {}, kPd, kStream}).fault,
              i % 2 == 0 ? AccessFault::InvalidStag : AccessFault::None);
  }
}

}  // namespace
}  // namespace rnic::mem

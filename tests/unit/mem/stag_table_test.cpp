#include <gtest/gtest.h>
#include <malloc.h>

#include <array>
#include <set>
#include <vector>

#include "../../support/sanitized.hpp"
#include "mem/mem.hpp"

namespace rnic::mem {
namespace {

class StagTableTest : public ::testing::Test {
 protected:
  static constexpr uint32_t kPd = 7;
  static constexpr uint64_t kStream = 42;

  Stag add(AccessSet rights, std::optional<uint64_t> offset = {},
           std::optional<uint64_t> stream = {}) {
    auto stag = table.add({.address = memory.data(),
                           .length = memory.size(),
                           .pd = kPd,
                           .rights = rights,
                           .offset = offset,
                           .stream = stream});
    EXPECT_TRUE(stag.has_value());
    return stag.value_or(Stag{});
  }
  AccessFault fault(Stag stag, uint64_t to, uint64_t length, AccessSet rights = {},
                    uint32_t pd = kPd, uint64_t stream = kStream) {
    const AccessGrant grant = table.access({stag, to, length, rights, pd, stream});
    EXPECT_EQ(grant.at == nullptr, grant.fault != AccessFault::None);
    return grant.fault;
  }

  std::array<uint8_t, 256> memory{};
  const uint64_t base = reinterpret_cast<uint64_t>(memory.data());
  StagTable table{4, {1, 2}};
};

// BUG-01 SEC-6.2.1-01 SEC-6.3.1-01: octet granularity at both ends, for whoever asks.
// RDMAP-8.1-01: RFC 5040 s.8.1.1(3)
TEST_F(StagTableTest, BoundsAtOctetGranularity_DDP_7_1_08) {
  // By address, zero-based, from an offset of the owner's choice, and up to the last offset of all.
  for (const uint64_t to : {base, uint64_t{0}, uint64_t{0x1234567890}, UINT64_MAX - 255}) {
    const Stag stag = to == base ? add({}) : add({}, to);
    EXPECT_EQ(fault(stag, to, 256), AccessFault::None);
    const bool last = to + 256 == 0;
    const AccessFault behind = last ? AccessFault::Wrap : AccessFault::Bounds;
    EXPECT_EQ(fault(stag, to, 257), behind);
    EXPECT_EQ(fault(stag, to + 255, 1), AccessFault::None);
    EXPECT_EQ(fault(stag, to + 255, 2), behind);
    EXPECT_EQ(fault(stag, to + 256, 1), AccessFault::Bounds);
    EXPECT_EQ(fault(stag, to + 1, UINT32_MAX), behind);
    if (to != 0) {
      EXPECT_EQ(fault(stag, to - 1, 1), AccessFault::Bounds);
      EXPECT_EQ(fault(stag, 0, 1), AccessFault::Bounds);
    }
    EXPECT_EQ(table.access({stag, to + 17, 3, {}, kPd, kStream}).at, memory.data() + 17);
    ASSERT_TRUE(table.remove(stag).has_value());
  }
}

TEST_F(StagTableTest, WrapIsToldFromBounds_DDP_7_1_10) {
  const Stag stag = add({}, 0);
  EXPECT_EQ(fault(stag, UINT64_MAX, 2), AccessFault::Wrap);
  EXPECT_EQ(fault(stag, UINT64_MAX - 63, 65), AccessFault::Wrap);
  EXPECT_EQ(fault(stag, UINT64_MAX - 63, 64), AccessFault::Bounds);
  EXPECT_EQ(fault(stag, 1, UINT64_MAX), AccessFault::Bounds);
  EXPECT_EQ(fault(stag, 2, UINT64_MAX), AccessFault::Wrap);
}

// DDP-7.1-09 DDP-8.2-01 DDP-8.2-02
TEST_F(StagTableTest, AssociationByPdAndByStream_DDP_8_2_03) {
  const Stag by_pd = add({});
  EXPECT_EQ(fault(by_pd, base, 1), AccessFault::None);
  EXPECT_EQ(fault(by_pd, base, 1, {}, kPd, kStream + 1), AccessFault::None);
  EXPECT_EQ(fault(by_pd, base, 1, {}, kPd + 1), AccessFault::NotAssociated);
  const Stag by_stream = add({}, {}, kStream);
  EXPECT_EQ(fault(by_stream, base, 1), AccessFault::None);
  EXPECT_EQ(fault(by_stream, base, 1, {}, kPd, kStream + 1), AccessFault::NotAssociated);
  EXPECT_EQ(fault(by_stream, base, 1, {}, kPd + 1, kStream), AccessFault::NotAssociated);
}

// Every combination of rights asked and granted. What a peer may invalidate is for one stream.
TEST_F(StagTableTest, EveryRightIsNeeded_DDP_8_3_1_02) {
  const uint32_t all = AccessSet::all().bits();
  for (uint32_t granted = 0; granted <= all; ++granted) {
    const Stag stag = add(static_cast<Access>(granted), {}, kStream);
    for (uint32_t asked = 0; asked <= all; ++asked) {
      const uint32_t held = granted | AccessSet(Access::LocalRead).bits();  // always granted
      EXPECT_EQ(fault(stag, base, 1, static_cast<Access>(asked)),
                (asked & ~held) == 0 ? AccessFault::None : AccessFault::Rights);
    }
    ASSERT_TRUE(table.remove(stag).has_value());
  }
}

// The first failing check in the order of RFC 5041 s.7.1 is the one that is told.
TEST_F(StagTableTest, OrderOfChecks) {
  const Stag stag = add({});
  EXPECT_EQ(fault(Stag{stag.value ^ 1}, UINT64_MAX, 9, Access::RemoteWrite, kPd + 1),
            AccessFault::InvalidStag);
  EXPECT_EQ(fault(stag, UINT64_MAX, 9, Access::RemoteWrite, kPd + 1), AccessFault::NotAssociated);
  EXPECT_EQ(fault(stag, UINT64_MAX, 9, Access::RemoteWrite), AccessFault::Rights);
  EXPECT_EQ(fault(stag, UINT64_MAX, 9), AccessFault::Wrap);
  EXPECT_EQ(fault(stag, UINT64_MAX, 1), AccessFault::Bounds);
}

// No other value of the 32 bits near the STag is accepted.
TEST_F(StagTableTest, OnlyTheExactStagIsValid_DDP_7_1_07) {
  const Stag stag = add({});
  for (uint32_t key = 0; key < 256; ++key) {
    const Stag other{(stag.value & ~0xffu) | key};
    EXPECT_EQ(fault(other, base, 1), other == stag ? AccessFault::None : AccessFault::InvalidStag);
  }
  for (const uint32_t value : {0u, 0xffu, 0xffffffffu, stag.value + 256, stag.value << 8}) {
    EXPECT_EQ(fault(Stag{value}, base, 1), AccessFault::InvalidStag);
  }
}

// DDP-8.3-02-a DDP-8.3-02-b: an STag works from the moment at which it is given, and
// a revoked one is dead, also when its slot was given to another region.
TEST_F(StagTableTest, RevokedStagNeverWorksAgain_DDP_8_3_1_01) {
  std::set<uint32_t> given;
  Stag previous = add({});
  for (int i = 0; i < 600; ++i) {
    ASSERT_TRUE(table.remove(previous).has_value());
    EXPECT_EQ(fault(previous, base, 1), AccessFault::InvalidStag);
    EXPECT_FALSE(table.remove(previous).has_value());
    const Stag next = add({});
    EXPECT_EQ(fault(next, base, 1), AccessFault::None);
    EXPECT_NE(next, previous);
    EXPECT_EQ(fault(previous, base, 1), AccessFault::InvalidStag);
    previous = next;
    given.insert(next.value);
  }
  EXPECT_GT(given.size(), 200u);
}

// The key of a slot is another one each time that the slot is given out, from every
// seed: a stale STag never names the slot's next region.
TEST_F(StagTableTest, TheKeyChangesWithEveryRegistration_DDP_8_3_1_01) {
  for (uint64_t seed = 0; seed < 64; ++seed) {
    StagTable one(1, {seed, 2});
    Stag previous{};
    for (int i = 0; i < 200; ++i) {
      const auto stag = one.add({.address = memory.data(), .length = 1});
      ASSERT_TRUE(stag.has_value());
      ASSERT_NE(*stag, previous) << "seed " << seed << ", registration " << i;
      previous = *stag;
      ASSERT_TRUE(one.remove(previous).has_value());
    }
  }
}

// A slot rests as long as possible: every other free one is given out before it.
TEST_F(StagTableTest, AFreedSlotIsTheLastToBeUsedAgain) {
  constexpr uint32_t kSlots = 4;
  std::vector<Stag> held;
  for (int i = 0; i < 2; ++i) held.push_back(add({}));
  for (int round = 0; round < 10; ++round) {
    const uint32_t freed = table.slot_of(held.front());
    ASSERT_TRUE(table.remove(held.front()).has_value());
    held.erase(held.begin());
    // As many others are free as slots less those in use and the one that has just been freed.
    for (uint32_t i = 0; i + 2 < kSlots; ++i) {
      held.push_back(add({}));
      EXPECT_NE(table.slot_of(held.back()), freed) << "round " << round;
    }
    const Stag last = add({});
    EXPECT_EQ(table.slot_of(last), freed) << "round " << round;
    ASSERT_TRUE(table.remove(last).has_value());
    while (held.size() > 2) {
      ASSERT_TRUE(table.remove(held.back()).has_value());
      held.pop_back();
    }
  }
}

// RFC 5042 s.6.2: who knows some STags knows no other; a limit of 65536 leaves 24 bits to guess.
TEST(StagSecrets, NobodyGuessesAnStag) {
  uint8_t octet = 0;
  std::set<uint32_t> first;
  uint32_t in_order = 0;
  for (uint64_t i = 0; i < 200; ++i) {
    StagTable table(65536, {i, 2});
    const auto one = table.add({.address = &octet, .length = 1});
    const auto two = table.add({.address = &octet, .length = 1});
    ASSERT_TRUE(one && two);
    first.insert(one->value);
    in_order += table.slot_of(*two) == table.slot_of(*one) + 1 ? 1 : 0;
  }
  EXPECT_GE(first.size(), 199u);
  EXPECT_LE(in_order, 1u);
}

TEST_F(StagTableTest, LimitIsKeptAndSlotsComeBack) {
  std::vector<Stag> stags;
  for (int i = 0; i < 4; ++i) stags.push_back(add({}));
  const auto refused = table.add({.address = memory.data(), .length = 1});
  ASSERT_FALSE(refused.has_value());
  EXPECT_EQ(refused.error().code, ErrorCode::ResourceExhausted);
  EXPECT_EQ(table.live(), 4u);
  for (const Stag stag : {stags[2], stags[0], stags[3], stags[1]}) {
    ASSERT_TRUE(table.remove(stag).has_value());
  }
  EXPECT_EQ(table.live(), 0u);
  std::set<uint32_t> indices;
  for (int i = 0; i < 4; ++i) indices.insert(table.slot_of(add({})));
  EXPECT_EQ(indices.size(), 4u);
}

TEST_F(StagTableTest, SenselessRegionsAreRefused) {
  for (uint32_t right = AccessSet::all().bits() + 1; right != 0; right <<= 1) {
    const auto refused = table.add({.address = memory.data(),
                                    .length = 8,
                                    .rights = Access::LocalWrite | static_cast<Access>(right)});
    ASSERT_FALSE(refused.has_value()) << right;
    EXPECT_EQ(refused.error().code, ErrorCode::InvalidArgument);
  }
  EXPECT_FALSE(table.add({.address = nullptr, .length = 8}).has_value());
  EXPECT_FALSE(table.add({.address = memory.data(), .length = UINT64_MAX}).has_value());
  StagTable none(0, {1, 2});
  EXPECT_FALSE(none.add({.address = memory.data(), .length = 1}).has_value());
  for (const uint32_t value : {0u, 1u, 255u, 256u, 512u, UINT32_MAX}) {
    EXPECT_EQ(none.access({Stag{value}, 0, 1}).fault, AccessFault::InvalidStag) << value;
  }
}

// The last octet of the address space may be a region's; the one behind it does not exist.
TEST_F(StagTableTest, ARegionMayEndWithTheAddressSpace) {
  auto* const near_the_end = reinterpret_cast<uint8_t*>(UINT64_MAX - 99);
  EXPECT_FALSE(table.add({.address = near_the_end, .length = 101}).has_value());
  const auto last = table.add({.address = near_the_end, .length = 100});
  ASSERT_TRUE(last.has_value());
  EXPECT_EQ(table.access({*last, UINT64_MAX, 1}).at, near_the_end + 99);
  EXPECT_EQ(table.access({*last, UINT64_MAX, 2}).fault, AccessFault::Wrap);
}

// A slot costs an entry, what its owner has, and its place among those that are free; slot 0 has an
// entry, but is never free.
TEST_F(StagTableTest, MemoryIsToldToTheOctet) {
  const uint64_t none = StagTable::octets_for(0);
  const uint64_t each = StagTable::octets_for(1) - none;
  EXPECT_GE(each, 64 + sizeof(uint32_t)) << "a cache line, and a number";
  for (const uint32_t limit : {1u, 2u, 1000u, 100'000u}) {
    EXPECT_EQ(StagTable::octets_for(limit), none + limit * each);
  }
  EXPECT_EQ(StagTable::octets_for(UINT32_MAX), StagTable::octets_for(StagNames::kMaxSlots));
}

// What a table asks the machine for is what it tells, also where the limit is more than an STag can
// name. malloc() takes blocks of this size from the system, each of whole pages and with a header.
TEST_F(StagTableTest, MemoryIsAskedForAsTold) {
  if (test::kSanitized) GTEST_SKIP() << test::kNotMeasured;
  constexpr uint64_t kRounding = uint64_t{4} << 12;
  for (const uint32_t limit : {5'000'000u, StagNames::kMaxSlots, 0x1ffffffu}) {
    const uint64_t before = mallinfo2().hblkhd;
    const StagTable large(limit, {1, 2});
    const uint64_t asked = mallinfo2().hblkhd - before;
    EXPECT_GE(asked, StagTable::octets_for(limit)) << limit;
    EXPECT_LE(asked, StagTable::octets_for(limit) + kRounding) << limit;
  }
}

// RDMAP-5.3-06
TEST_F(StagTableTest, RemoteInvalidation_RDMAP_5_3_08) {
  const Stag fixed = add(Access::RemoteWrite, {}, kStream);
  EXPECT_EQ(table.invalidate(fixed, kPd, kStream), AccessFault::Rights);
  const Stag stag = add(Access::RemoteWrite | Access::RemoteInvalidate, {}, kStream);
  EXPECT_EQ(table.invalidate(Stag{stag.value ^ 1}, kPd, kStream), AccessFault::InvalidStag);
  EXPECT_EQ(table.invalidate(stag, kPd + 1, kStream), AccessFault::NotAssociated);
  EXPECT_EQ(table.invalidate(stag, kPd, kStream + 1), AccessFault::NotAssociated);
  EXPECT_EQ(fault(stag, base, 1), AccessFault::None);
  EXPECT_EQ(table.invalidate(stag, kPd, kStream), AccessFault::None);
  EXPECT_EQ(fault(stag, base, 1), AccessFault::InvalidStag);
  EXPECT_EQ(table.invalidate(stag, kPd, kStream), AccessFault::InvalidStag);
  // The slot stays with its owner until he removes it.
  EXPECT_EQ(table.live(), 2u);
  EXPECT_TRUE(table.remove(stag).has_value());
  EXPECT_EQ(table.live(), 1u);
}

// Inside of it each access is allowed, to the octet, and no octet outside is.
TEST_F(StagTableTest, RunOfARegion) {
  for (const uint64_t to : {base, uint64_t{0}, uint64_t{0x1234567890}, UINT64_MAX - 255}) {
    const AccessRun run = table.run_of(add(Access::RemoteWrite, to));
    EXPECT_EQ(run.at, memory.data());
    // An octet at 2^64 - 1 is in no run.
    EXPECT_EQ(run.offsets, (base::Range{to, to == UINT64_MAX - 255 ? UINT64_MAX : to + 256}));
  }
}

TEST_F(StagTableTest, WhatHasNoRun) {
  EXPECT_TRUE(table.run_of(Stag{0x1234}).offsets.empty());
  const Stag stag = add({}, 0);
  EXPECT_TRUE(table.run_of(Stag{stag.value ^ 1}).offsets.empty());
  EXPECT_TRUE(table.remove(stag).has_value());
  EXPECT_TRUE(table.run_of(stag).offsets.empty());
  const base::ByteSpan all(memory);
  const std::array<base::ByteSpan, 2> pieces{all.first(16), all.subspan(32, 16)};
  const auto cut = table.add({.pd = kPd, .pieces = pieces});
  EXPECT_TRUE(table.run_of(cut.value()).offsets.empty());
}

// The region's own side needs no right, and is held to protection domain and stream all the same.
TEST_F(StagTableTest, LocalInvalidationAsksForDomainAndStream) {
  const Stag stag = add({}, {}, kStream);
  EXPECT_EQ(table.invalidate_local(stag, kStream, kPd), AccessFault::NotAssociated);
  EXPECT_EQ(table.invalidate_local(stag, kPd + 1, kStream), AccessFault::NotAssociated);
  EXPECT_EQ(table.invalidate_local(stag, kPd, kStream + 1), AccessFault::NotAssociated);
  EXPECT_EQ(fault(stag, base, 1), AccessFault::None);
  EXPECT_EQ(table.invalidate_local(stag, kPd, kStream), AccessFault::None);
  EXPECT_EQ(fault(stag, base, 1), AccessFault::InvalidStag);
}

}  // namespace
}  // namespace rnic::mem

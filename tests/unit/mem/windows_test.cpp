// Windows and fast registrations: STags that stand on regions.

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <tuple>
#include <vector>

#include "mem/mem.hpp"

namespace rnic::mem {
namespace {

class Windows : public ::testing::Test {
 protected:
  static constexpr uint32_t kPd = 7;
  static constexpr uint64_t kStream = 42;
  static constexpr AccessSet kBoth = Access::RemoteRead | Access::RemoteWrite;

  Stag region_with(AccessSet rights, std::optional<uint64_t> stream = {}) {
    return table
        .add({.address = memory.data(),
              .length = memory.size(),
              .pd = kPd,
              .rights = rights,
              .offset = 1000,
              .stream = stream})
        .value();
  }
  /// The whole memory in three pieces, the last octets first.
  Stag region_in_pieces() {
    const std::vector<base::ByteSpan> pieces{
        {memory.data() + 200, 56}, {memory.data() + 100, 100}, {memory.data(), 100}};
    return table
        .add({.pd = kPd,
              .rights = Access::Bind | Access::LocalWrite,
              .offset = 1000,
              .pieces = pieces})
        .value();
  }
  /// Binds on behalf of the queue pair of kStream, with the next key.
  AccessFault bind(Stag& stag, std::vector<Sge> parts, AccessSet rights, uint64_t offset = 0) {
    const Stag wanted = stag.with_key(static_cast<uint8_t>(stag.key() + 1));
    const AccessFault fault = table.bind({.stag = wanted,
                                          .parts = parts,
                                          .offset = offset,
                                          .rights = rights,
                                          .pd = kPd,
                                          .stream = kStream});
    if (fault == AccessFault::None) stag = wanted;
    return fault;
  }
  AccessFault fault(Stag stag, uint64_t to, uint64_t length, AccessSet rights = {},
                    uint64_t stream = kStream) const {
    return table.access({stag, to, length, rights, kPd, stream}).fault;
  }
  /// Which octet of the memory an offset is.
  ptrdiff_t place(Stag stag, uint64_t to) const {
    const uint8_t* const at = table.access({stag, to, 1, {}, kPd, kStream}).at;
    return at == nullptr ? -1 : at - memory.data();
  }

  std::array<uint8_t, 256> memory{};
  StagTable table{{.stags = 8, .max_pieces = 12}, {1, 2}};
  const Stag region = region_with(Access::Bind | Access::LocalWrite);
  Stag window = table.add_window(kPd, WindowType::QueuePair).value();
  const Stag name = window;  // what its owner calls it
};

// A window shows exactly the octets that it was bound to, from the offset that was chosen, with the
// rights that were given, whatever of the region is around it.
TEST_F(Windows, ShowWhatIsNeededAndNothingElse_SEC_6_3_4_01) {
  EXPECT_EQ(fault(window, 0, 1), AccessFault::InvalidStag) << "it is not bound";
  for (const uint32_t first : {0u, 1u, 100u, 255u}) {
    for (const uint32_t length : {0u, 1u, 7u, 256 - first}) {
      if (length > 256 - first) continue;
      ASSERT_EQ(bind(window, {{1000 + first, length, region.value}}, Access::RemoteRead, 500),
                AccessFault::None);
      EXPECT_EQ(fault(window, 500 + length, 1), AccessFault::Bounds);
      EXPECT_EQ(fault(window, 499, 1), AccessFault::Bounds);
      EXPECT_EQ(fault(window, 500, length + 1), AccessFault::Bounds);
      if (length != 0) {
        EXPECT_EQ(fault(window, 500, length, Access::RemoteRead), AccessFault::None);
        EXPECT_EQ(fault(window, 500, length, Access::RemoteWrite), AccessFault::Rights);
        EXPECT_EQ(fault(window, 500, length, Access::LocalRead), AccessFault::Rights)
            << "it is for the peer";
        EXPECT_EQ(place(window, 500), first);
        EXPECT_EQ(place(window, 500 + length - 1), first + length - 1);
      }
      ASSERT_EQ(table.invalidate_local(window, kPd, kStream), AccessFault::None);
      EXPECT_EQ(fault(window, 500, 1), AccessFault::InvalidStag);
    }
  }
  EXPECT_EQ(table.dependents(region), 0u);
}

TEST_F(Windows, CoverPiecesAsTheRegionDoes_VERBS_04) {
  const Stag scattered = region_in_pieces();
  ASSERT_EQ(bind(window, {{1050, 12, scattered.value}}, kBoth), AccessFault::None);
  EXPECT_EQ(place(window, 0), 250);
  EXPECT_EQ(place(window, 5), 255);
  EXPECT_EQ(place(window, 6), 100);
  EXPECT_EQ(place(window, 11), 105);
  EXPECT_EQ(table.access({window, 4, 8, kBoth, kPd, kStream}).run, 2u);
  EXPECT_EQ(fault(window, 11, 2), AccessFault::Bounds);
}

// What a window may give, by what the region gives: nothing without Bind; reading always; writing
// and atomics where the region gives them or its own side may write.
TEST_F(Windows, GiveNoMoreThanTheRegionCan_VERBS_04) {
  const AccessSet writing = Access::RemoteWrite | Access::RemoteAtomic;
  struct Row {
    AccessSet region;
    AccessSet most;  // that may be given
  };
  for (const Row& row :
       {Row{Access::LocalWrite | kBoth, {}}, Row{Access::Bind, Access::RemoteRead},
        Row{Access::Bind | Access::RemoteWrite, kBoth},
        Row{Access::Bind | Access::RemoteAtomic, Access::RemoteRead | Access::RemoteAtomic},
        Row{Access::Bind | Access::LocalWrite, Access::RemoteRead | writing}}) {
    const Stag under = region_with(row.region);
    for (const Access right : {Access::RemoteRead, Access::RemoteWrite, Access::RemoteAtomic}) {
      const bool allowed = row.most.contains(right);
      EXPECT_EQ(bind(window, {{1000, 8, under.value}}, right),
                allowed ? AccessFault::None : AccessFault::Rights)
          << row.region.bits() << " " << AccessSet(right).bits();
      if (allowed) {
        ASSERT_TRUE(table.unbind(name).has_value());
      }
    }
    for (const Access right : {Access::LocalRead, Access::LocalWrite, Access::Bind}) {
      EXPECT_EQ(bind(window, {{1000, 8, under.value}}, right), AccessFault::Rights)
          << "a window is for the peer";
    }
    ASSERT_TRUE(table.remove(under).has_value());
  }
}

// Each way in which a binding is refused leaves the window, the region and what is bound there as
// they were.
TEST_F(Windows, WhatIsRefusedChangesNothing_BUG_10) {
  const Stag others = region_with(Access::Bind | Access::LocalWrite, kStream + 1);
  const Stag elsewhere =
      table.add({.address = memory.data(), .length = 8, .pd = kPd + 1, .rights = Access::Bind})
          .value();
  const auto expect = [&](std::vector<Sge> parts, AccessFault why, uint64_t offset = 0) {
    EXPECT_EQ(bind(window, std::move(parts), Access::RemoteRead, offset), why);
    EXPECT_EQ(table.dependents(region), 0u);
    EXPECT_EQ(fault(window.with_key(static_cast<uint8_t>(window.key() + 1)), offset, 1),
              AccessFault::InvalidStag);
  };
  expect({}, AccessFault::Rights);
  expect({{1000, 1, region.value}, {1001, 1, region.value}}, AccessFault::Rights);
  expect({{1000, 1, region.value ^ 1}}, AccessFault::InvalidStag);
  expect({{1000, 1, window.value}}, AccessFault::InvalidStag);
  expect({{1000, 1, others.value}}, AccessFault::NotAssociated);
  expect({{reinterpret_cast<uint64_t>(memory.data()), 1, elsewhere.value}},
         AccessFault::NotAssociated);
  expect({{999, 1, region.value}}, AccessFault::Bounds);
  expect({{1000, 257, region.value}}, AccessFault::Bounds);
  expect({{1256, 1, region.value}}, AccessFault::Bounds);
  expect({{0, 1, region.value}}, AccessFault::Bounds);
  expect({{1000, 9, region.value}}, AccessFault::Wrap, UINT64_MAX - 7);
  // Not the window: another one's index, another domain, the key that it has, and one in use.
  const std::vector<Sge> part{{1000, 8, region.value}};
  const auto refused = [&](Stag stag, uint32_t pd) {
    return table.bind({.stag = stag, .parts = part, .rights = kBoth, .pd = pd, .stream = kStream});
  };
  EXPECT_EQ(refused(Stag{window.value ^ 0x80000000}, kPd), AccessFault::InvalidStag);
  EXPECT_EQ(refused(Stag{UINT32_MAX}, kPd), AccessFault::InvalidStag);
  EXPECT_EQ(refused(region.with_key(1), kPd), AccessFault::InvalidStag);
  EXPECT_EQ(refused(window.with_key(static_cast<uint8_t>(window.key() + 1)), kPd + 1),
            AccessFault::NotAssociated);
  EXPECT_EQ(refused(window, kPd), AccessFault::Rights);
  ASSERT_EQ(bind(window, part, kBoth), AccessFault::None);
  Stag again = window;
  EXPECT_EQ(bind(again, part, kBoth), AccessFault::Rights) << "it has to be invalidated first";
  EXPECT_EQ(fault(window, 0, 8, kBoth), AccessFault::None);
  EXPECT_EQ(table.dependents(region), 1u);
}

// A window of type 2 is the queue pair's that bound it; the peer may invalidate it where that was
// given, no other stream may, and it is free to be bound again.
TEST_F(Windows, AreOfTheQueuePairThatBindsThem_VERBS_05) {
  const std::vector<Sge> part{{1000, 8, region.value}};
  ASSERT_EQ(bind(window, part, kBoth), AccessFault::None);
  EXPECT_EQ(fault(window, 0, 8, kBoth, kStream + 1), AccessFault::NotAssociated);
  EXPECT_EQ(table.invalidate(window, kPd, kStream), AccessFault::Rights);
  ASSERT_EQ(table.invalidate_local(window, kPd, kStream), AccessFault::None);
  const Stag before = window;
  ASSERT_EQ(bind(window, part, kBoth | Access::RemoteInvalidate), AccessFault::None);
  EXPECT_EQ(fault(before, 0, 1), AccessFault::InvalidStag);
  EXPECT_EQ(table.invalidate(window, kPd, kStream + 1), AccessFault::NotAssociated);
  EXPECT_EQ(table.invalidate(window, kPd, kStream), AccessFault::None);
  EXPECT_EQ(fault(window, 0, 1), AccessFault::InvalidStag);
  EXPECT_EQ(table.dependents(region), 0u);
}

// One of type 1 is for all queue pairs of its domain, is bound and bound elsewhere by a call, and
// its former STag is dead then.
TEST_F(Windows, OfADomainAreBoundByACall_VERBS_04) {
  Stag wide = table.add_window(kPd, WindowType::Domain).value();
  const auto bind_it = [&](uint64_t to, uint32_t length, AccessSet rights) {
    const std::vector<Sge> part{{to, length, region.value}};
    return table.bind_for_domain({.stag = wide, .parts = part, .offset = to, .rights = rights});
  };
  for (int i = 0; i < 100; ++i) {
    const auto to = static_cast<uint64_t>(1000 + i);
    const Stag before = wide;
    wide = bind_it(to, 10, kBoth).value();
    EXPECT_EQ(wide.index(), before.index());
    EXPECT_NE(wide, before);
    EXPECT_EQ(fault(before, to, 1), AccessFault::InvalidStag);
    EXPECT_EQ(fault(wide, to, 10, kBoth), AccessFault::None);
    EXPECT_EQ(fault(wide, to, 10, kBoth, kStream + i), AccessFault::None) << "any stream";
    EXPECT_EQ(table.dependents(region), 1u);
  }
  for (const auto& [to, length, rights] : {std::tuple{999, 1, kBoth}, std::tuple{1000, 257, kBoth},
                                           std::tuple{1000, 1, AccessSet(Access::RemoteInvalidate)},
                                           std::tuple{1000, 1, AccessSet(Access::LocalWrite)}}) {
    EXPECT_FALSE(bind_it(static_cast<uint64_t>(to), static_cast<uint32_t>(length), rights));
    EXPECT_EQ(fault(wide, 1099, 10, kBoth), AccessFault::None) << "it is bound where it was";
  }
  EXPECT_EQ(table.bind_for_domain({.stag = window, .rights = kBoth}).error().code,
            ErrorCode::NotFound);
  Stag by_work = wide;
  EXPECT_EQ(bind(by_work, {{1000, 1, region.value}}, kBoth), AccessFault::InvalidStag);
  EXPECT_NE(table.invalidate(wide, kPd, kStream), AccessFault::None) << "it is shared";
  ASSERT_TRUE(table.unbind(wide).has_value());
  EXPECT_EQ(fault(wide, 1099, 1), AccessFault::InvalidStag);
  EXPECT_FALSE(table.unbind(region).has_value());
  EXPECT_TRUE(table.remove(wide).has_value());
}

// What a region is stands fast while windows are bound to it; when it goes all the same, they end
// with it, each at once, and can be bound to another one.
TEST_F(Windows, EndWithTheirRegion_VERBS_02) {
  std::vector<Stag> windows{window};
  for (int i = 0; i < 3; ++i)
    windows.push_back(table.add_window(kPd, WindowType::QueuePair).value());
  for (Stag& each : windows) {
    ASSERT_EQ(bind(each, {{1000, 8, region.value}}, kBoth), AccessFault::None);
  }
  EXPECT_EQ(table.dependents(region), 4u);
  EXPECT_EQ(table.invalidate_local(region, kPd, kStream), AccessFault::Rights);
  EXPECT_EQ(table.change(region, {.pd = kPd}).error().code, ErrorCode::WrongState);
  EXPECT_EQ(fault(region, 1000, 1), AccessFault::None);
  ASSERT_EQ(table.invalidate_local(windows[1], kPd, kStream), AccessFault::None);
  ASSERT_EQ(table.invalidate_local(windows[3], kPd, kStream), AccessFault::None);
  EXPECT_EQ(table.dependents(region), 2u);
  ASSERT_TRUE(table.remove(region).has_value());
  for (const Stag each : windows) EXPECT_EQ(fault(each, 0, 1), AccessFault::InvalidStag);
  const Stag next = region_with(Access::Bind);
  EXPECT_EQ(table.dependents(next), 0u);
  for (Stag& each : windows) {
    EXPECT_EQ(bind(each, {{1000, 8, next.value}}, Access::RemoteRead), AccessFault::None);
  }
  EXPECT_EQ(table.dependents(next), 4u);
}

// --- fast registration ---

TEST_F(Windows, TheErrorsCountWhatStandsOnARegionByKind) {
  const std::vector<Sge> part{{1000, 8, region.value}};
  ASSERT_EQ(bind(window, part, kBoth), AccessFault::None);
  EXPECT_EQ(table.dependents_in_words(region), "1 window on it");
  for (int i = 0; i < 2; ++i) {
    Stag fast = table.add_allocated(kPd, 1).value();
    EXPECT_EQ(table.pieces_of(fast), 1u);
    EXPECT_FALSE(table.is_window(fast));
    ASSERT_EQ(bind(fast, part, kBoth), AccessFault::None);
  }
  EXPECT_EQ(table.dependents_in_words(region), "1 window and 2 fast registrations on it");
  const std::string refusal = table.change(region, {.pd = kPd}).error().message;
  EXPECT_NE(refusal.find("1 window and 2 fast registrations on it: invalidate"), std::string::npos)
      << refusal;
  ASSERT_EQ(table.invalidate_local(window, kPd, kStream), AccessFault::None);
  EXPECT_EQ(table.dependents_in_words(region), "2 fast registrations on it");
  EXPECT_TRUE(table.is_window(name));
  EXPECT_FALSE(table.is_window(region));
  EXPECT_EQ(table.pieces_of(name), 0u);
}

// Parts of several regions are one range of offsets; the STag was there before, has the key that
// was asked for, and may be registered again after it was invalidated.
TEST_F(Windows, SeveralPartsAreRegisteredAtOnce_VERBS_03) {
  const Stag scattered = region_in_pieces();
  Stag fast = table.add_allocated(kPd, 4).value();
  EXPECT_EQ(fault(fast, 0, 1), AccessFault::InvalidStag);
  const std::vector<Sge> parts{
      {1010, 5, region.value}, {1054, 4, scattered.value}, {1000, 0, region.value}};
  ASSERT_EQ(bind(fast, parts, kBoth | Access::LocalWrite, 77), AccessFault::None);
  for (const auto& [to, at] : {std::pair{77, 10}, std::pair{81, 14}, std::pair{82, 254},
                               std::pair{83, 255}, std::pair{84, 100}, std::pair{85, 101}}) {
    EXPECT_EQ(place(fast, static_cast<uint64_t>(to)), at) << to;
  }
  EXPECT_EQ(fault(fast, 77, 9, kBoth | Access::LocalWrite | Access::LocalRead), AccessFault::None);
  EXPECT_EQ(fault(fast, 77, 10), AccessFault::Bounds);
  EXPECT_EQ(fault(fast, 76, 1), AccessFault::Bounds);
  EXPECT_EQ(fault(fast, 77, 9, kBoth, kStream + 1), AccessFault::None) << "of the whole domain";
  EXPECT_EQ(table.dependents(region), 1u);
  EXPECT_EQ(table.dependents(scattered), 1u);
  const Stag before = fast;
  EXPECT_EQ(bind(fast, parts, kBoth), AccessFault::Rights) << "it is valid";
  ASSERT_EQ(table.invalidate_local(fast, kPd, kStream), AccessFault::None);
  EXPECT_EQ(table.dependents(region), 0u);
  EXPECT_EQ(table.dependents(scattered), 0u);
  // One part, which follows itself; and the peer may invalidate it, so that it is one stream's.
  ASSERT_EQ(bind(fast, {{1020, 5, region.value}}, Access::RemoteRead | Access::RemoteInvalidate),
            AccessFault::None);
  EXPECT_EQ(fault(before, 77, 1), AccessFault::InvalidStag);
  EXPECT_EQ(place(fast, 4), 24);
  EXPECT_EQ(fault(fast, 0, 1, Access::RemoteRead, kStream + 1), AccessFault::NotAssociated);
  EXPECT_EQ(table.invalidate(fast, kPd, kStream + 1), AccessFault::NotAssociated);
  EXPECT_EQ(table.invalidate(fast, kPd, kStream), AccessFault::None);
}

// More pieces than were allocated, rights that a region cannot give, Bind, an end behind 2^64: none
// of it registers anything.
TEST_F(Windows, AFastRegistrationThatIsRefusedChangesNothing_BUG_10) {
  const Stag scattered = region_in_pieces();
  Stag fast = table.add_allocated(kPd, 2).value();
  const Stag read_only = region_with(Access::Bind);
  const auto expect = [&](std::vector<Sge> parts, AccessSet rights, AccessFault why,
                          uint64_t offset = 0) {
    EXPECT_EQ(bind(fast, std::move(parts), rights, offset), why);
    for (const Stag under : {region, scattered, read_only}) EXPECT_EQ(table.dependents(under), 0u);
  };
  expect({{1000, 157, scattered.value}}, kBoth, AccessFault::Bounds);
  expect({{1000, 1, region.value}, {1000, 1, region.value}, {1000, 1, region.value}}, kBoth,
         AccessFault::Bounds);
  expect({{1000, 1, region.value}, {1000, 1, read_only.value}}, Access::RemoteWrite,
         AccessFault::Rights);
  expect({{1000, 1, read_only.value}}, Access::LocalWrite, AccessFault::Rights);
  expect({{1000, 1, region.value}}, Access::Bind, AccessFault::Rights);
  expect({{1000, 1, region.value}, {1000, 1, region.value}}, kBoth, AccessFault::Wrap, UINT64_MAX);
  EXPECT_EQ(bind(fast, {{1000, 156, scattered.value}}, kBoth), AccessFault::None) << "two pieces";
  EXPECT_FALSE(table.add_allocated(kPd, 0).has_value());
  const uint64_t pieces = table.pieces();
  EXPECT_EQ(table.add_allocated(kPd, 8).error().code, ErrorCode::ResourceExhausted);
  EXPECT_EQ(table.pieces(), pieces);
}

// All regions that it stands on end it, the first one that goes; and it gives up its place in each.
TEST_F(Windows, AFastRegistrationEndsWithEachOfItsRegions_VERBS_02) {
  for (const size_t first : {0u, 1u}) {
    const std::array<Stag, 2> under{region_with(Access::Bind), region_with(Access::Bind)};
    Stag fast = table.add_allocated(kPd, 4).value();
    const Stag allocated = fast;
    ASSERT_EQ(
        bind(fast,
             {{1000, 1, under[0].value}, {1000, 1, under[1].value}, {1001, 1, under[0].value}},
             Access::RemoteRead),
        AccessFault::None);
    ASSERT_TRUE(table.remove(under[first]).has_value());
    EXPECT_EQ(fault(fast, 0, 1), AccessFault::InvalidStag);
    EXPECT_EQ(table.dependents(under[1 - first]), 0u);
    ASSERT_TRUE(table.remove(allocated).has_value());
    ASSERT_TRUE(table.remove(under[1 - first]).has_value());
  }
  EXPECT_EQ(table.pieces(), 0u);
}

// Peers of two domains, or of two queue pairs, that may write to the same octet are told to whoever
// has asked for it; readers are not, nor neighbours, nor those who share a domain.
TEST_F(Windows, PeersThatWriteToTheSameMemoryAreTold_SEC_6_3_6_01) {
  for (const bool watched : {true, false}) {
    StagTable watch({.stags = 64, .watch_aliases = watched}, {1, 2});
    uint64_t told = 0;
    const auto add = [&](uint32_t pd, size_t from, size_t to, AccessSet rights, bool alias,
                         std::optional<uint64_t> stream = {}) {
      const Stag stag = watch
                            .add({.address = memory.data() + from,
                                  .length = to - from,
                                  .pd = pd,
                                  .rights = rights,
                                  .offset = 0,
                                  .stream = stream})
                            .value();
      told += alias && watched ? 1 : 0;
      EXPECT_EQ(watch.aliased(), told) << pd << " " << from << " " << to;
      return stag;
    };
    constexpr AccessSet kWrite = Access::RemoteWrite;
    const Stag first = add(1, 50, 100, kWrite | Access::Bind, false);
    add(2, 0, 50, kWrite, false);
    add(2, 100, 200, kWrite, false);
    add(1, 50, 100, kWrite, false);
    add(2, 50, 100, Access::RemoteRead | Access::LocalWrite, false);
    add(2, 99, 100, kWrite, true);
    add(2, 0, 51, Access::RemoteAtomic, true);
    add(3, 0, 256, kWrite, true);
    add(3, 60, 60, kWrite, false);
    add(4, 210, 220, kWrite, true, 7);  // of domain 3, too
    ASSERT_TRUE(watch.remove(first).has_value());
    // One domain, two queue pairs.
    add(5, 230, 240, Access::RemoteRead, false, 8);
    StagTable one_domain({.stags = 8, .watch_aliases = watched}, {1, 2});
    const auto own = [&](uint64_t stream) {
      return one_domain.add(
          {.address = memory.data(), .length = 8, .pd = 1, .rights = kWrite, .stream = stream});
    };
    ASSERT_TRUE(own(1) && own(1));
    EXPECT_EQ(one_domain.aliased(), 0u);
    ASSERT_TRUE(own(2));
    EXPECT_EQ(one_domain.aliased(), watched ? 1u : 0u);
  }
}

// The same of windows and of pieces, by the octets that they reach.
TEST_F(Windows, AliasesAreFoundByTheOctet_SEC_6_3_6_01) {
  StagTable watch({.stags = 64, .watch_aliases = true}, {1, 2});
  const std::vector<base::ByteSpan> pieces{{memory.data() + 10, 10}, {memory.data() + 100, 10}};
  const Stag under =
      watch.add({.pd = 1, .rights = Access::Bind | Access::LocalWrite, .pieces = pieces}).value();
  for (const auto& [at, length] : {std::pair{0, 10}, std::pair{20, 80}, std::pair{110, 10}}) {
    ASSERT_TRUE(watch.add({.address = memory.data() + at,
                           .length = static_cast<uint64_t>(length),
                           .pd = 2,
                           .rights = Access::RemoteWrite}));
  }
  ASSERT_TRUE(watch.add(
      {.address = memory.data() + 105, .length = 1, .pd = 2, .rights = Access::RemoteWrite}));
  Stag wide = watch.add_window(1, WindowType::Domain).value();
  const auto bind_it = [&](uint64_t to, uint32_t length) {
    const std::vector<Sge> part{{to, length, under.value}};
    wide =
        watch.bind_for_domain({.stag = wide, .parts = part, .rights = Access::RemoteWrite}).value();
    return watch.aliased();
  };
  EXPECT_EQ(bind_it(0, 15), 0u);
  EXPECT_EQ(bind_it(16, 4), 0u);
  EXPECT_EQ(bind_it(9, 7), 1u) << "octet 105";
  Stag fast = watch.add_allocated(1, 4).value();
  const std::vector<Sge> parts{{0, 15, under.value}, {16, 4, under.value}};
  ASSERT_EQ(watch.bind({.stag = Stag{next_key(fast.value)},
                        .parts = parts,
                        .rights = Access::RemoteWrite,
                        .pd = 1,
                        .stream = 1}),
            AccessFault::None);
  EXPECT_EQ(watch.aliased(), 1u);
}

// Windows come and go in any order under regions that do; none is valid that should not be.
TEST_F(Windows, AnyOrderOfEndsLeavesNothing_VERBS_02) {
  ASSERT_TRUE(table.remove(name).has_value());
  ASSERT_TRUE(table.remove(region).has_value());
  for (int order = 0; order < 24; ++order) {
    std::array<int, 4> ends{0, 1, 2, 3};
    for (int i = 0; i < order; ++i) std::next_permutation(ends.begin(), ends.end());
    std::array<Stag, 4> stags{region_with(Access::Bind), region_with(Access::Bind),
                              table.add_window(kPd, WindowType::QueuePair).value(),
                              table.add_allocated(kPd, 3).value()};
    const std::array<Stag, 4> names = stags;
    ASSERT_EQ(bind(stags[2], {{1000, 8, stags[0].value}}, Access::RemoteRead), AccessFault::None);
    ASSERT_EQ(
        bind(stags[3], {{1000, 8, stags[0].value}, {1000, 8, stags[1].value}}, Access::RemoteRead),
        AccessFault::None);
    for (const int end : ends) {
      ASSERT_TRUE(table.remove(names[static_cast<size_t>(end)]).has_value());
      EXPECT_EQ(fault(stags[static_cast<size_t>(end)], 1000, 1), AccessFault::InvalidStag);
    }
    EXPECT_EQ(table.live(), 0u);
    EXPECT_EQ(table.pieces(), 0u);
  }
}

}  // namespace
}  // namespace rnic::mem

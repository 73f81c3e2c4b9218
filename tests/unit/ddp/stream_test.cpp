#include "ddp/tagged.hpp"
#include "stream_fixture.hpp"

namespace rnic::ddp {
namespace {

// Pieces cut at every position give the same result.
TEST_F(StreamTest, TaggedPlacementCutAtEveryPosition_BUG_03) {
  const auto ulpdu = tagged({.last = true, .stag = stag, .to = 10}, 64);
  for (size_t piece = 1; piece <= ulpdu.size(); ++piece) {
    memory.fill(kGuard);
    EXPECT_EQ(place(ulpdu, true, piece), PlaceVerdict::Placed);
    EXPECT_TRUE(std::equal(payload.begin(), payload.begin() + 64, memory.begin() + 74));
    EXPECT_EQ(std::count(memory.begin(), memory.end(), kGuard), 256 - 64);
  }
  EXPECT_EQ(segments, ulpdu.size());
  EXPECT_EQ(octets, ulpdu.size() * 64);
  deliver(ulpdu);
  EXPECT_EQ(user.delivered, (std::vector<Delivered>{{true, 64}}));
}

// What a user does not say itself: it may always be asked, never knows how much it has, and has
// nothing to tell a silent peer.
TEST_F(StreamTest, AUserThatSaysNothingOfWhatWaits) {
  for (const uint32_t n : {0u, 1u, 100'000u}) {
    EXPECT_TRUE(stream.fills_segment(n, 0));
    EXPECT_FALSE(stream.all_fits(n, 0));
  }
  stream.peer_silent();
  EXPECT_EQ(user.pulls, 0u);
}

// Each refusal of memory has its code on the wire; what is granted has none.
TEST(TaggedFault, OfEachRefusal) {
  const struct {
    mem::AccessFault refusal;
    Fault expected;
  } rows[] = {{mem::AccessFault::InvalidStag, {FaultLayer::Ddp, 1, 0x00}},
              {mem::AccessFault::Bounds, {FaultLayer::Ddp, 1, 0x01}},
              {mem::AccessFault::NotAssociated, {FaultLayer::Ddp, 1, 0x02}},
              {mem::AccessFault::Wrap, {FaultLayer::Ddp, 1, 0x03}},
              {mem::AccessFault::Rights, {FaultLayer::Rdmap, 1, 0x02}}};
  for (const auto& [refusal, expected] : rows) {
    const Fault fault = tagged_fault(refusal);
    EXPECT_TRUE(fault.failed());
    EXPECT_EQ(fault.layer, expected.layer);
    EXPECT_EQ(fault.type, expected.type);
    EXPECT_EQ(fault.code, expected.code);
  }
  EXPECT_FALSE(tagged_fault(mem::AccessFault::None).failed());
}

TEST_F(StreamTest, InvalidStag_DDP_7_1_07) {
  expect_fault(tagged({.last = true, .stag = stag ^ 1}, 8), {FaultLayer::Ddp, 1, 0x00});
}
// DDP-7.1-14
TEST_F(StreamTest, TaggedPastTheBound_DDP_7_1_08) {
  expect_fault(tagged({.last = true, .stag = stag, .to = 128 - 63}, 64),
               {FaultLayer::Ddp, 1, 0x01});
}
// DDP-8.2-01
TEST_F(StreamTest, StagOfAnotherPd_DDP_7_1_09) {
  expect_fault(tagged({.last = true, .stag = add(Access::RemoteWrite, kPd + 1)}, 8),
               {FaultLayer::Ddp, 1, 0x02});
}
// UNH-DDP-03
TEST_F(StreamTest, StagOfAnotherStream_DDP_8_2_02) {
  expect_fault(tagged({.last = true, .stag = add(Access::RemoteWrite, kPd, kQp + 1)}, 8),
               {FaultLayer::Ddp, 1, 0x02});
}
TEST_F(StreamTest, TaggedWrap_DDP_7_1_10) {
  expect_fault(tagged({.last = true, .stag = stag, .to = UINT64_MAX - 3}, 8),
               {FaultLayer::Ddp, 1, 0x03});
}
// The mapping of this implementation.
TEST_F(StreamTest, WriteWithoutRight_DDP_7_2_02) {
  expect_fault(tagged({.last = true, .stag = add(Access::RemoteRead)}, 8),
               {FaultLayer::Rdmap, 1, 0x02});
}
TEST_F(StreamTest, TaggedVersion_DDP_4_1_07_a) {
  expect_fault(tagged({.last = true, .version = 2, .stag = stag}, 8), {FaultLayer::Ddp, 1, 0x04});
}
TEST_F(StreamTest, UntaggedVersion_DDP_4_1_07_a) {
  provide({{0, 128, stag}});
  expect_fault(untagged({.last = true, .version = 0, .msn = 1}, 8), {FaultLayer::Ddp, 2, 0x06});
}
TEST_F(StreamTest, UnknownQn_DDP_7_1_01) {
  expect_fault(untagged({.last = true, .qn = 3, .msn = 1}, 8), {FaultLayer::Ddp, 2, 0x01});
}
TEST_F(StreamTest, NoBuffer_DDP_7_1_02) {
  expect_fault(untagged({.last = true, .msn = 1}, 8), {FaultLayer::Ddp, 2, 0x02});
}
TEST_F(StreamTest, MsnPastTheRange_DDP_7_1_03) {
  provide({{0, 128, stag}});
  expect_fault(untagged({.last = true, .msn = 7}, 8), {FaultLayer::Ddp, 2, 0x03});
}
TEST_F(StreamTest, MsnBeforeTheRange_DDP_7_1_03) {
  provide({{0, 128, stag}});
  expect_fault(untagged({.last = true, .msn = 0}, 8), {FaultLayer::Ddp, 2, 0x03});
}
TEST_F(StreamTest, MoOutside_DDP_7_1_04) {
  provide({{0, 64, add(Access::LocalWrite)}});
  expect_fault(untagged({.last = true, .msn = 1, .mo = 65}, 8), {FaultLayer::Ddp, 2, 0x04});
}
// One octet too long.
TEST_F(StreamTest, TooLong_DDP_7_1_05) {
  provide({{0, 64, add(Access::LocalWrite)}});
  expect_fault(untagged({.last = true, .msn = 1, .mo = 57}, 8), {FaultLayer::Ddp, 2, 0x05});
}
TEST_F(StreamTest, MoThatWrapsWithTheLength_DDP_7_1_05) {
  provide({{0, 64, add(Access::LocalWrite)}});
  expect_fault(untagged({.last = true, .msn = 1, .mo = UINT32_MAX}, 8), {FaultLayer::Ddp, 2, 0x04});
}
// DDP-7.2-01: the second piece of our own buffer was never registered; the first stays untouched,
// too.
TEST_F(StreamTest, BadReceiveBuffer_DDP_7_1_14) {
  provide({{0, 32, add(Access::LocalWrite)}, {0, 32, 0x123456}});
  expect_fault(untagged({.last = true, .msn = 1}, 40), {FaultLayer::Ddp, 0, 0x00});
}
// Every length below the header's.
TEST_F(StreamTest, ShorterThanItsHeader_BUG_02) {
  for (const uint8_t control : {0x00, 0x41, 0x80, 0xc1}) {
    for (size_t n = 0; n < wire::ddp_header_size(control); ++n) {
      std::vector<uint8_t> ulpdu(n, control);
      RecordingUser own;
      Stream fresh{config, table, own, {segments, octets, postponed}};
      const test::CutView cut(ulpdu);
      EXPECT_EQ(fresh.place_ulpdu(cut.view(), false, {}), PlaceVerdict::Hold);
      EXPECT_EQ(fresh.place_ulpdu(cut.view(), true, {}), PlaceVerdict::Fault);
      fresh.deliver_ulpdu(ulpdu, static_cast<uint32_t>(n), {});
      ASSERT_EQ(own.faults.size(), 1u);
      EXPECT_EQ(own.faults[0].type, kLocalCatastrophic);
      EXPECT_EQ(own.report.header_size, 0);
    }
  }
}

// UNH-DDP-05
TEST_F(StreamTest, EmptyTaggedIsNotChecked_DDP_5_2_07) {
  const auto ulpdu = tagged({.last = true, .stag = 0xdeadbeef, .to = UINT64_MAX}, 0);
  EXPECT_EQ(place(ulpdu), PlaceVerdict::Placed);
  deliver(ulpdu);
  EXPECT_EQ(user.delivered, (std::vector<Delivered>{{true, 0}}));
}

// RDMAP-7.1-05 DDP-3-08: the first fault is told once, what follows is dropped.
// UNH-DDP-12
TEST_F(StreamTest, AfterAFaultNothingIsPlaced_DDP_7_1_11) {
  const auto good = tagged({.last = true, .stag = stag, .to = 0}, 8);
  const auto bad = tagged({.last = true, .stag = stag, .to = 125}, 8);
  const auto worse = tagged({.last = true, .stag = 1}, 8);
  EXPECT_EQ(place(bad), PlaceVerdict::Fault);
  place(good);
  place(worse);
  EXPECT_TRUE(untouched());
  deliver(bad);
  deliver(good);
  deliver(worse);
  ASSERT_EQ(user.faults.size(), 1u);
  EXPECT_EQ(user.faults[0].code, 0x01);
  EXPECT_TRUE(user.delivered.empty());
}

// A fault found in a batch does not swallow the delivery of what stands before it.
TEST_F(StreamTest, DeliveriesBeforeTheFaultStillHappen) {
  const auto good = tagged({.last = true, .stag = stag, .to = 0}, 8);
  const auto bad = tagged({.last = true, .stag = stag, .to = 125}, 8);
  EXPECT_EQ(place(good), PlaceVerdict::Placed);
  EXPECT_EQ(place(bad), PlaceVerdict::Fault);
  deliver(good);
  EXPECT_TRUE(user.faults.empty());
  deliver(bad);
  EXPECT_EQ(user.faults.size(), 1u);
  EXPECT_EQ(user.delivered.size(), 1u);
}

// DDP-5.4-01 DDP-5.4-02: all orders of placement; pieces in three SGEs.
TEST_F(StreamTest, UntaggedSegmentsInEveryOrderOfPlacement_DDP_5_3_05) {
  const uint32_t sink = add(Access::LocalWrite);
  std::array<int, 4> order{0, 1, 2, 3};
  uint32_t msn = 0;
  do {
    memory.fill(kGuard);
    ++msn;
    provide({{100, 5, sink}, {0, 0, 0x77}, {0, 30, sink}, {50, 20, sink}});
    std::vector<std::vector<uint8_t>> ulpdus;
    for (uint32_t i = 0; i < 4; ++i) {
      ulpdus.push_back(untagged({.last = i == 3, .msn = msn, .mo = i * 12}, 12));
    }
    for (const int i : order) EXPECT_EQ(place(ulpdus[i], false), PlaceVerdict::Placed);
    EXPECT_EQ(user.delivered.size(), msn - 1);
    for (const auto& ulpdu : ulpdus) deliver(ulpdu);
    ASSERT_EQ(user.delivered.size(), msn);
    EXPECT_EQ(user.delivered.back(), (Delivered{false, 48}));
    EXPECT_TRUE(std::equal(payload.begin(), payload.begin() + 5, memory.begin() + 164));
    EXPECT_TRUE(std::equal(payload.begin() + 5, payload.begin() + 35, memory.begin() + 64));
    EXPECT_TRUE(std::equal(payload.begin() + 35, payload.begin() + 48, memory.begin() + 114));
    EXPECT_EQ(std::count(memory.begin(), memory.end(), kGuard), 256 - 48);
  } while (std::next_permutation(order.begin(), order.end()));
  EXPECT_TRUE(user.faults.empty());
}

// A held segment is judged again, and its check may pass then (its buffer was posted).
// UNH-DDP-07
TEST_F(StreamTest, HeldForABufferThatComesInTime_DDP_7_1_06) {
  provide({{0, 16, add(Access::LocalWrite)}});
  const auto first = untagged({.last = true, .msn = 1}, 8);
  const auto second = untagged({.last = true, .msn = 2}, 8);
  EXPECT_EQ(place(second, false), PlaceVerdict::Hold);
  EXPECT_EQ(postponed, 1u);
  EXPECT_EQ(place(first), PlaceVerdict::Placed);
  deliver(first);
  provide({{32, 16, add(Access::LocalWrite)}});
  EXPECT_EQ(place(second), PlaceVerdict::Placed);
  deliver(second);
  EXPECT_EQ(user.delivered.size(), 2u);
}

// An MSN that was left out shows at the delivery point.
TEST_F(StreamTest, SkippedMsnIsFoundAtDelivery_DDP_7_1_03) {
  provide({{0, 16, add(Access::LocalWrite)}});
  provide({{16, 16, add(Access::LocalWrite)}});
  const auto second = untagged({.last = true, .msn = 2}, 8);
  EXPECT_EQ(place(second), PlaceVerdict::Placed);
  deliver(second);
  ASSERT_EQ(user.faults.size(), 1u);
  EXPECT_EQ(user.faults[0].code, 0x03);
  EXPECT_TRUE(user.delivered.empty());
}

// UNH-DDP-07
TEST_F(StreamTest, MsnWrapsToZero_DDP_4_3_04) {
  stream.start_at(0, UINT32_MAX);
  user.first_msn = UINT32_MAX;
  const uint32_t sink = add(Access::LocalWrite);
  provide({{0, 16, sink}});
  provide({{16, 16, sink}});
  for (const uint32_t msn : {UINT32_MAX, 0u}) {
    const auto ulpdu = untagged({.last = true, .msn = msn}, 8);
    EXPECT_EQ(place(ulpdu), PlaceVerdict::Placed);
    deliver(ulpdu);
  }
  EXPECT_EQ(user.delivered.size(), 2u);
  const auto past = untagged({.last = true, .msn = 1}, 8);
  EXPECT_EQ(place(past), PlaceVerdict::Fault);
}

// Where the octets go is told anew for each segment: nothing is left of the segment
// before, also where there is no payload to place.
TEST(CheckTagged, TheTargetIsToldAnew_DDP_5_2_07) {
  std::array<uint8_t, 16> memory{};
  mem::StagTable table(1, {1, 2});
  const auto stag =
      table.add({.address = memory.data(), .length = memory.size(), .offset = 0}).value();
  Pieces target;
  const wire::DdpTaggedHeader header{.last = true, .stag = stag.value, .to = 4};
  for (const uint32_t payload : {8u, 12u, 0u}) {
    EXPECT_FALSE(check_tagged(table, {}, header, payload, {}, target).failed());
    ASSERT_EQ(target.view().size(), payload == 0 ? 0u : 1u) << payload;
    if (payload == 0) continue;
    EXPECT_EQ(target.view()[0].data(), memory.data() + 4);
    EXPECT_EQ(target.view()[0].size(), payload);
  }
}

}  // namespace
}  // namespace rnic::ddp

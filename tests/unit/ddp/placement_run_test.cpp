// Segments of one run of memory: what has been checked of one is not asked again for the next. What
// differs is, and so is everything once a STag has ended.
#include <functional>

#include "stream_fixture.hpp"

namespace rnic::ddp {
namespace {

class PlacementRunTest : public StreamTest {
 protected:
  PlacementRunTest() {
    user.same = {0, UINT64_MAX};
    user.quiet = true;
  }
  PlaceVerdict take(const std::vector<uint8_t>& ulpdu, bool more = false) {
    const test::CutView cut(ulpdu, SIZE_MAX);
    return stream.take_ulpdu(cut.view(), more, {});
  }
  void take_good(const std::vector<uint8_t>& ulpdu) {
    EXPECT_EQ(take(ulpdu), PlaceVerdict::Delivered);
    EXPECT_TRUE(user.faults.empty());
  }
  /// A segment of eight octets to offset `to` of the region.
  std::vector<uint8_t> write(uint64_t to, bool last = false) {
    return tagged({.last = last, .stag = stag, .to = to}, 8);
  }
  /// A segment of eight octets of the message `msn`.
  std::vector<uint8_t> send(uint32_t msn, uint32_t mo, bool last = false) {
    return untagged({.last = last, .msn = msn, .mo = mo}, 8);
  }
  /// A buffer of 32 octets at the begin of the region.
  void provide_buffer() { provide({{0, 32, add(Access::LocalWrite)}}); }
  [[nodiscard]] bool holds_at(size_t offset, size_t from, size_t count) const {
    return std::equal(payload.begin() + static_cast<ptrdiff_t>(from),
                      payload.begin() + static_cast<ptrdiff_t>(from + count),
                      memory.begin() + 64 + static_cast<ptrdiff_t>(offset));
  }
  void expect_refused(const std::vector<uint8_t>& ulpdu, const Fault& expected) {
    const auto before = memory;
    EXPECT_EQ(take(ulpdu), PlaceVerdict::Delivered);
    ASSERT_EQ(user.faults.size(), 1u);
    EXPECT_EQ(code_of(user.faults[0]), code_of(expected));
    EXPECT_EQ(memory, before);
    take(write(0));
    EXPECT_EQ(memory, before) << "a segment behind an error";
  }
};

/// One more, beside that of the test.
struct Fresh final : PlacementRunTest {
  using PlacementRunTest::send, PlacementRunTest::write, PlacementRunTest::take,
      PlacementRunTest::take_good, PlacementRunTest::expect_refused,
      PlacementRunTest::provide_buffer;
  using StreamTest::add, StreamTest::memory, StreamTest::provide, StreamTest::stag,
      StreamTest::stream, StreamTest::table, StreamTest::tagged, StreamTest::untagged,
      StreamTest::user;
  void TestBody() override {}
};
struct Wrong {
  std::function<std::vector<uint8_t>(Fresh&)> make;
  Fault expected;
};

TEST_F(PlacementRunTest, AsksOnceForSegmentsOfOneMessage) {
  for (const uint64_t to : {0, 8, 120, 32}) take_good(write(to));
  EXPECT_EQ(user.tagged_targets, 1u);
  EXPECT_EQ(user.tagged_deliveries, 0u) << "without L there is nothing to be told";
  EXPECT_EQ(stream.take_quiet_octets(), 32u) << "but how many octets";
  take_good(write(16, true));
  take_good(write(24, true));
  EXPECT_EQ(user.tagged_targets, 1u);
  EXPECT_EQ(user.tagged_deliveries, 2u);
  EXPECT_EQ(stream.take_quiet_octets(), 0u);
  EXPECT_EQ(segments, 6u);
  EXPECT_EQ(octets, 48u);
  EXPECT_TRUE(holds_at(32, 0, 8) && holds_at(120, 0, 8) && memory[192] == kGuard);
}

// DDP-7.1-07 DDP-7.1-08
TEST_F(PlacementRunTest, WhatDiffersIsCheckedAgain) {
  const std::vector<Wrong> wrong = {
      {[](Fresh& t) { return t.tagged({.stag = t.stag ^ 1, .to = 8}, 8); }, kTaggedInvalidStag},
      {[](Fresh& t) { return t.tagged({.version = 0, .stag = t.stag, .to = 8}, 8); },
       kTaggedVersion},
      {[](Fresh& t) { return t.write(121); }, kTaggedBounds},
      {[](Fresh& t) { return t.write(129); }, kTaggedBounds},
      {[](Fresh& t) { return t.write(UINT64_MAX); }, kTaggedWrap},
      {[](Fresh& t) {
         EXPECT_TRUE(t.table.remove(mem::Stag{t.stag}));
         return t.write(8);
       },
       kTaggedInvalidStag},
      {[](Fresh& t) {
         t.stream.peer_finished(true, {});
         return t.write(8);
       },
       kAfterFinish},
  };
  for (size_t i = 0; i < wrong.size(); ++i) {
    SCOPED_TRACE(i);
    Fresh fresh;
    fresh.take_good(fresh.write(0));
    fresh.expect_refused(wrong[i].make(fresh), wrong[i].expected);
  }
}

TEST_F(PlacementRunTest, AsksAgainForAnotherControlField) {
  take_good(write(0));
  take_good(tagged({.rsvd_ulp = 0x42, .stag = stag, .to = 8}, 8));
  EXPECT_EQ(user.tagged_targets, 2u);
}

TEST_F(PlacementRunTest, AsksAgainOutsideOfWhatTheUserHasAnswered) {
  user.same = {16, 32};
  for (const uint64_t to : {16, 24}) take_good(write(to));
  EXPECT_EQ(user.tagged_targets, 1u);
  for (const uint64_t to : {25, 8}) take_good(write(to));
  EXPECT_EQ(user.tagged_targets, 3u);
}

// The sink of a Read is its Response's until the last segment. RDMAP-5.2.2-04
TEST_F(PlacementRunTest, EndsWithAMessageThatIsNotQuiet) {
  user.quiet = false;
  take_good(write(0));
  take_good(write(8));
  EXPECT_EQ(user.tagged_targets, 1u);
  EXPECT_EQ(user.tagged_deliveries, 2u) << "each is told";
  take_good(write(16, true));
  EXPECT_EQ(user.tagged_targets, 1u);
  take_good(write(24));
  EXPECT_EQ(user.tagged_targets, 2u);
}

// The octets of a Response are counted without a call, up to as many as were asked for.
TEST_F(PlacementRunTest, CountsTheOctetsOfAResponse) {
  user.quiet = false;
  user.same = {16, 48};
  Coverage coverage;
  user.coverage = &coverage;
  take_good(write(16));  // the user counts this one, and that with L
  EXPECT_EQ(user.tagged_deliveries, 1u);
  coverage.add(0, 8, config.secret);
  take_good(write(24));
  EXPECT_EQ(take(write(32), true), PlaceVerdict::Delivered);
  EXPECT_EQ(user.tagged_deliveries, 1u);
  take_good(write(40, true));
  EXPECT_EQ(user.tagged_deliveries, 2u);
  coverage.add(24, 8, config.secret);
  EXPECT_TRUE(coverage.exactly(32, config.secret));
}

// Segments inside of the sink can still be too many. BUG-01
TEST_F(PlacementRunTest, TellsTheUserOfOctetsThatAreTooMany) {
  user.quiet = false;
  user.same = {16, 32};
  Coverage coverage;
  coverage.add(0, 8, config.secret);
  user.coverage = &coverage;
  take_good(write(16));
  take_good(write(24));
  EXPECT_EQ(user.tagged_deliveries, 1u);
  EXPECT_EQ(coverage.octets(), 16u);
  user.refuses_tagged = true;
  EXPECT_EQ(take(write(24)), PlaceVerdict::Delivered);
  EXPECT_EQ(user.tagged_deliveries, 2u);
  EXPECT_EQ(user.faults.size(), 1u);
  EXPECT_EQ(coverage.octets(), 16u);
}

TEST_F(PlacementRunTest, TellsTheUserWhereTheSinkIsMoreThanTheRun) {
  user.quiet = false;
  user.same = {120, 136};
  Coverage coverage;
  user.coverage = &coverage;
  for (uint32_t i = 1; i <= 2; ++i) {
    take_good(write(120));
    EXPECT_EQ(user.tagged_deliveries, i);
  }
  EXPECT_EQ(user.tagged_targets, 1u);
  EXPECT_EQ(coverage.octets(), 0u);
}

TEST_F(PlacementRunTest, IsNotBegunWhereAccessesDoNotLast) {
  mem::StagTable brief({.stags = 8, .lasting = false}, {1, 2});
  const auto region = brief.add({.address = memory.data() + 64,
                                 .length = 128,
                                 .pd = kPd,
                                 .rights = Access::RemoteWrite,
                                 .offset = 0});
  Stream other{config, brief, user, {segments, octets, postponed}};
  for (const uint64_t to : {0, 8}) {
    const auto ulpdu = tagged({.stag = region->value, .to = to}, 8);
    const test::CutView cut(ulpdu, SIZE_MAX);
    EXPECT_EQ(other.take_ulpdu(cut.view(), false, {}), PlaceVerdict::Delivered);
  }
  EXPECT_EQ(user.tagged_targets, 2u);
}

TEST_F(PlacementRunTest, EndsWhenTheVersionBecomesKnown) {
  take_good(write(0));
  stream.may_send();
  take_good(write(8));
  EXPECT_EQ(user.tagged_targets, 2u);
}

TEST_F(PlacementRunTest, NothingIsPlacedBehindTheEndOfTheStream) {
  take_good(write(0));
  stream.stop();
  EXPECT_EQ(take(write(8)), PlaceVerdict::Delivered);
  EXPECT_EQ(segments, 1u);
  EXPECT_EQ(memory[64 + 8], kGuard);
}

// What was placed ahead of the order is delivered by itself.
TEST_F(PlacementRunTest, APartThatIsDeliveredAloneIsNotToldEither) {
  const auto deliver = [this](uint64_t to, bool last) {
    const auto header = write(to, last);
    stream.deliver_ulpdu(header, static_cast<uint32_t>(header.size()), {});
  };
  deliver(8, false);
  EXPECT_EQ(user.tagged_deliveries, 1u) << "there is no run";
  take_good(write(0));
  deliver(8, false);
  EXPECT_EQ(user.tagged_deliveries, 1u);
  deliver(16, true);
  EXPECT_EQ(user.tagged_deliveries, 2u) << "L";
  user.quiet = false;
  stream.may_send();
  take_good(write(24));
  const uint32_t before = user.tagged_deliveries;
  deliver(32, false);
  EXPECT_EQ(user.tagged_deliveries, before + 1) << "of a target that is not quiet";
}

// Before others of its segment are placed only what affects none of them is delivered.
TEST_F(PlacementRunTest, AQuietSegmentIsDeliveredAmongOthers) {
  EXPECT_EQ(take(write(0, true), true), PlaceVerdict::Delivered) << "asked for";
  EXPECT_EQ(take(write(8, true), true), PlaceVerdict::Delivered) << "of the run";
  EXPECT_EQ(user.tagged_deliveries, 2u);
  user.quiet = false;
  stream.may_send();
  EXPECT_EQ(take(write(16), true), PlaceVerdict::Placed) << "asked for";
  EXPECT_EQ(take(write(24), true), PlaceVerdict::Placed) << "of the run";
  EXPECT_EQ(user.tagged_deliveries, 2u);
  provide_buffer();
  EXPECT_EQ(take(send(1, 0, true), true), PlaceVerdict::Placed);
  EXPECT_TRUE(user.delivered.size() == 2);
}

// --- untagged ---

TEST_F(PlacementRunTest, AsksOnceForSegmentsOfAnUntaggedMessage) {
  provide_buffer();
  provide_buffer();
  for (const uint32_t msn : {1u, 2u}) {
    for (const uint32_t mo : {0u, 8u, 16u}) take_good(send(msn, mo));
    EXPECT_TRUE(user.delivered.size() == msn - 1);
    take_good(send(msn, 24, true));
    EXPECT_EQ(user.untagged_targets, msn);
    ASSERT_EQ(user.delivered.size(), msn);
    EXPECT_EQ(user.delivered.back(), (Delivered{false, 32}));
    EXPECT_TRUE(user.uniform.back());
  }
  EXPECT_TRUE(holds_at(0, 0, 32));
  EXPECT_EQ(octets, 64u);
}

TEST_F(PlacementRunTest, WhatDiffersInAnUntaggedSegmentIsCheckedAgain) {
  const std::vector<Wrong> wrong = {
      {[](Fresh& t) { return t.send(1, 25); }, kUntaggedTooLong},
      {[](Fresh& t) { return t.send(1, 33); }, kUntaggedMo},
      {[](Fresh& t) { return t.send(3, 8); }, kUntaggedNoBuffer},
      {[](Fresh& t) { return t.send(2, 8); }, kUntaggedMsnRange},
      {[](Fresh& t) { return t.untagged({.qn = 3, .msn = 1, .mo = 8}, 8); }, kUntaggedQn},
      {[](Fresh& t) { return t.untagged({.version = 0, .msn = 1, .mo = 8}, 8); },
       kUntaggedVersion},
      {[](Fresh& t) {
         EXPECT_TRUE(t.table.remove(mem::Stag{t.user.sges[0][0].stag}));
         return t.send(1, 8);
       },
       kCatastrophic},
  };
  for (size_t i = 0; i < wrong.size(); ++i) {
    SCOPED_TRACE(i);
    Fresh fresh;
    fresh.provide_buffer();
    fresh.provide({{64, 32, fresh.add(Access::LocalWrite)}});
    fresh.take_good(fresh.send(1, 0));
    // The one ahead of the order is placed where it belongs, and found out at its delivery.
    if (i == 3) fresh.memory.fill(kGuard);
    const auto ulpdu = wrong[i].make(fresh);
    EXPECT_EQ(fresh.take(ulpdu), PlaceVerdict::Delivered);
    ASSERT_EQ(fresh.user.faults.size(), 1u);
    EXPECT_EQ(code_of(fresh.user.faults[0]), code_of(wrong[i].expected));
    EXPECT_TRUE(std::ranges::all_of(std::span(fresh.memory).subspan(64 + 8, 24),
                                    [](uint8_t o) { return o == kGuard; }));
  }
}

TEST_F(PlacementRunTest, AMessageOfSeveralControlFieldsIsFoundOut) {
  provide_buffer();
  take_good(send(1, 0));
  take_good(send(1, 8));
  take_good(untagged({.rsvd_ulp_tail = 7, .msn = 1, .mo = 16}, 8));
  take_good(send(1, 24, true));
  EXPECT_EQ(user.uniform, std::vector<bool>{false});
}

TEST_F(PlacementRunTest, SegmentsThatRepeatEachOtherAreFoundOut) {
  provide_buffer();
  for (const uint32_t mo : {0u, 8u, 8u}) take_good(send(1, mo));
  EXPECT_EQ(take(send(1, 24, true)), PlaceVerdict::Delivered);
  ASSERT_EQ(user.faults.size(), 1u);
  EXPECT_EQ(code_of(user.faults[0]), code_of(kUntaggedGap));
}

TEST_F(PlacementRunTest, ABufferOfSeveralPiecesHasNone) {
  const uint32_t local = add(Access::LocalWrite);
  provide({{0, 12, local}, {64, 20, local}});
  for (const uint32_t mo : {0u, 8u, 16u}) take_good(send(1, mo));
  take_good(send(1, 24, true));
  EXPECT_EQ(user.untagged_targets, 4u);
  EXPECT_TRUE(holds_at(0, 0, 12) && holds_at(64, 12, 20) && memory[64 + 12] == kGuard);
}

// Where the user has said so, messages of a run are counted, and it is not told of each.
TEST_F(PlacementRunTest, AMessageOfAQuietRunIsOnlyCounted) {
  uint64_t messages = 0;
  user.messages = &messages;
  take_good(write(0, true));
  EXPECT_EQ(user.tagged_deliveries, 1u) << "the run begins behind it";
  take_good(write(8, true));
  EXPECT_EQ(take(write(16, true), true), PlaceVerdict::Delivered);
  take_good(write(24));
  EXPECT_EQ(messages, 2u) << "those with L";
  EXPECT_EQ(user.tagged_deliveries, 1u);
  EXPECT_TRUE(holds_at(24, 0, 8));
}

TEST_F(PlacementRunTest, TheUserIsToldOfMessagesThatMayEndSomething) {
  uint64_t messages = 0;
  user.messages = &messages;
  user.quiet = false;
  take_good(write(0));
  take_good(write(8, true));
  EXPECT_EQ(messages, 0u);
  EXPECT_EQ(user.delivered.size(), 1u);
}

}  // namespace
}  // namespace rnic::ddp

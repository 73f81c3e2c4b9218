// Taking a segment at once beside placing it and then delivering it: the same calls, octets, counts
// and faults.
#include <functional>
#include <random>

#include "stream_fixture.hpp"

namespace rnic::ddp {
namespace {

/// A stream with all that it works with.
struct Side {
  Side() {
    memory.fill(0xa5);
    stag = add(Access::RemoteWrite, 3, {});
    read_only = add(Access::RemoteRead, 3, {});
    foreign = add(Access::RemoteWrite, 4, {});
    user.sges.push_back({Sge{0, 128, add(Access::LocalWrite, 3, {})}});
    stream.provide(0, 1);
  }
  uint32_t add(AccessSet rights, uint32_t pd, std::optional<uint64_t> only) {
    return table
        .add({.address = memory.data() + 64,
              .length = 128,
              .pd = pd,
              .rights = rights,
              .offset = 0,
              .stream = only})
        .value()
        .value;
  }

  std::array<uint8_t, 256> memory;
  mem::StagTable table{8, {1, 2}};
  RecordingUser user;
  uint64_t segments = 0, octets = 0, postponed = 0;
  uint32_t stag = 0, read_only = 0, foreign = 0;
  Stream stream{
      {.who = {3, 5}, .queues = 3, .secret = 77}, table, user, {segments, octets, postponed}};
};

std::vector<uint8_t> tagged(DdpTaggedHeader header, uint32_t length) {
  std::vector<uint8_t> ulpdu(14 + length, 7);
  wire::write_ddp(ulpdu.data(), header);
  return ulpdu;
}
std::vector<uint8_t> untagged(DdpUntaggedHeader header, uint32_t length) {
  std::vector<uint8_t> ulpdu(18 + length, 9);
  wire::write_ddp(ulpdu.data(), header);
  return ulpdu;
}

/// Gives each ULPDU to both sides, cut into pieces of that size.
void expect_twins(const std::function<void(Side&)>& prepare,
                  const std::function<std::vector<std::vector<uint8_t>>(Side&)>& ulpdus,
                  size_t piece = SIZE_MAX) {
  Side once;
  Side steps;
  prepare(once);
  prepare(steps);
  const auto for_once = ulpdus(once);
  const auto for_steps = ulpdus(steps);
  for (size_t i = 0; i < for_once.size(); ++i) {
    SCOPED_TRACE(i);
    const test::CutView cut(for_once[i], piece);
    const test::CutView same(for_steps[i], piece);
    EXPECT_EQ(once.stream.take_ulpdu(cut.view(), false, {}),
              steps.stream.llp::FramingUser::take_ulpdu(same.view(), false, {}));
    EXPECT_EQ(once.memory, steps.memory);
    EXPECT_EQ(once.segments, steps.segments);
    EXPECT_EQ(once.octets, steps.octets);
    EXPECT_EQ(once.user.delivered, steps.user.delivered);
    ASSERT_EQ(once.user.faults.size(), steps.user.faults.size());
    for (size_t f = 0; f < once.user.faults.size(); ++f) {
      EXPECT_EQ(code_of(once.user.faults[f]), code_of(steps.user.faults[f]));
      EXPECT_EQ(once.user.report.length, steps.user.report.length);
      EXPECT_TRUE(std::ranges::equal(once.user.report.view(), steps.user.report.view()));
    }
  }
}

TEST(TakeUlpdu, TaggedSegmentsInAnyPieces) {
  for (const size_t piece : {size_t{SIZE_MAX}, size_t{1}, size_t{13}, size_t{14}, size_t{20}}) {
    expect_twins([](Side&) {},
                 [](Side& side) -> std::vector<std::vector<uint8_t>> {
                   return {tagged({.stag = side.stag, .to = 0}, 64),
                           tagged({.last = true, .stag = side.stag, .to = 64}, 64),
                           tagged({.last = true, .stag = side.stag, .to = 0}, 0),
                           untagged({.last = true, .msn = 1}, 32)};
                 },
                 piece);
  }
}

// Each refusal, with good segments before and behind it: those behind are dropped.
TEST(TakeUlpdu, FaultsOfPlacement) {
  using Make = std::function<std::vector<uint8_t>(Side&)>;
  const std::vector<Make> wrong = {
      [](Side& side) { return tagged({.last = true, .stag = side.stag ^ 1}, 8); },
      [](Side& side) { return tagged({.last = true, .stag = side.read_only}, 8); },
      [](Side& side) { return tagged({.last = true, .stag = side.foreign}, 8); },
      [](Side& side) { return tagged({.last = true, .stag = side.stag, .to = 121}, 8); },
      [](Side& side) { return tagged({.last = true, .stag = side.stag, .to = UINT64_MAX}, 8); },
      [](Side& side) { return tagged({.last = true, .version = 0, .stag = side.stag}, 8); },
      [](Side&) { return untagged({.last = true, .qn = 3, .msn = 1}, 8); },
      [](Side&) { return untagged({.last = true, .msn = 2}, 8); },
      [](Side& side) {
        std::vector<uint8_t> cut = tagged({.last = true, .stag = side.stag}, 0);
        cut.resize(13);
        return cut;
      },
      [](Side&) { return std::vector<uint8_t>{0x81}; },
  };
  for (const Make& make : wrong) {
    for (const size_t piece : {size_t{SIZE_MAX}, size_t{5}}) {
      expect_twins([](Side&) {},
                   [&](Side& side) -> std::vector<std::vector<uint8_t>> {
                     return {tagged({.last = true, .stag = side.stag}, 8), make(side),
                             tagged({.last = true, .stag = side.stag, .to = 8}, 8)};
                   },
                   piece);
    }
  }
}

TEST(TakeUlpdu, WhereNothingIsPlacedAnyMore) {
  const auto good = [](Side& side) -> std::vector<std::vector<uint8_t>> {
    return {tagged({.last = true, .stag = side.stag}, 8)};
  };
  expect_twins([](Side& side) { side.stream.stop(); }, good);
  expect_twins([](Side& side) { side.stream.peer_finished(true, {}); }, good);
}

// Runs of memory begin and end in any order; one side takes each segment at once, and asks as
// seldom as it may, the other one in two steps, and asks each time.
TEST(TakeUlpdu, TwinsOnAnySegments) {
  uint32_t asked_once = 0;
  uint32_t asked_in_steps = 0;
  for (uint32_t seed = 0; seed < 2000; ++seed) {
    SCOPED_TRACE(seed);
    Side once;
    Side steps;
    const bool quiet = seed % 2 == 0;
    once.user.same = seed % 3 == 0 ? base::Range{16, 96} : base::Range{0, UINT64_MAX};
    once.user.quiet = quiet;
    for (Side* side : {&once, &steps}) {
      for (uint32_t i = 0; i < 2; ++i) side->user.sges.push_back(side->user.sges[0]);
      side->stream.provide(0, 2);
    }
    std::mt19937 random(seed);
    uint32_t msn = 1;
    uint32_t mo = 0;
    for (uint32_t i = 0; i < 30 && once.user.faults.empty(); ++i) {
      const uint32_t length = random() % 24;
      const uint32_t kind = random() % 16;
      const bool last = random() % 4 == 0;
      const bool odd = random() % 40 == 0;  // a field is not what it should be
      if (kind == 0 && odd) {
        for (Side* side : {&once, &steps}) ASSERT_TRUE(side->table.remove(mem::Stag{side->stag}));
      }
      const auto make = [&](const Side& side) {
        if (kind < 9 || msn > 3) {
          const uint64_t to = i % 5 * 20 + (odd ? 100 : 0);
          return tagged({.last = last, .stag = side.stag, .to = to}, length);
        }
        const uint32_t tail = odd ? 1 : 0;
        return untagged({.last = last, .rsvd_ulp_tail = tail, .msn = msn, .mo = mo}, length);
      };
      const auto for_once = make(once);
      const auto for_steps = make(steps);
      if (for_once[0] < 0x80) {
        mo = last ? 0 : mo + length;
        msn += last ? 1 : 0;
      }
      const test::CutView cut(for_once, seed % 5 == 0 ? 19 : SIZE_MAX);
      const test::CutView same(for_steps, seed % 5 == 0 ? 19 : SIZE_MAX);
      EXPECT_EQ(once.stream.take_ulpdu(cut.view(), false, {}),
                steps.stream.llp::FramingUser::take_ulpdu(same.view(), false, {}));
    }
    ASSERT_EQ(once.memory, steps.memory);
    ASSERT_EQ(once.segments, steps.segments);
    ASSERT_EQ(once.octets, steps.octets);
    ASSERT_EQ(once.user.delivered, steps.user.delivered);
    ASSERT_EQ(once.user.uniform, steps.user.uniform);
    ASSERT_EQ(once.user.faults.size(), steps.user.faults.size());
    for (size_t f = 0; f < once.user.faults.size(); ++f) {
      ASSERT_EQ(code_of(once.user.faults[f]), code_of(steps.user.faults[f]));
    }
    asked_once += once.user.tagged_targets + once.user.untagged_targets;
    asked_in_steps += steps.user.tagged_targets + steps.user.untagged_targets;
  }
  EXPECT_LT(3 * asked_once, 2 * asked_in_steps);
}

// A fault that the user finds at the delivery, of a segment that was placed.
TEST(TakeUlpdu, FaultsOfDelivery) {
  expect_twins([](Side& side) { side.user.refuses_tagged = true; },
               [](Side& side) -> std::vector<std::vector<uint8_t>> {
                 return {tagged({.last = true, .stag = side.stag}, 8),
                         tagged({.last = true, .stag = side.stag, .to = 8}, 8)};
               });
}

}  // namespace
}  // namespace rnic::ddp

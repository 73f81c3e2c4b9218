// Messages and streams as a whole: boundaries, order, other ULPs' queues, ends.

#include <optional>

#include "stream_fixture.hpp"

namespace rnic::ddp {
namespace {

class MessageTest : public StreamTest {
 protected:
  void fresh() {
    memory.fill(kGuard);
    user = RecordingUser{};
    stream_.emplace(config, table, user, Tally{segments, octets, postponed});
  }
  /// One segment of message 1 of queue 0.
  [[nodiscard]] std::vector<uint8_t> part(uint32_t mo, uint32_t length, bool last,
                                          uint32_t msn = 1) const {
    return untagged({.last = last, .msn = msn, .mo = mo}, length);
  }
  void take(const std::vector<uint8_t>& ulpdu) {
    const test::CutView cut(ulpdu);
    stream_->place_ulpdu(cut.view(), true, {});
    const auto head = std::min<size_t>(ulpdu.size(), llp::kUlpduHeaderMax);
    stream_->deliver_ulpdu(base::ByteView(ulpdu).first(head), static_cast<uint32_t>(ulpdu.size()),
                           {});
  }
  void buffers(uint32_t n) {
    for (uint32_t i = 0; i < n; ++i) user.sges.push_back({{0, 128, sink}});
    stream_->provide(0, n);
  }
  void SetUp() override {
    sink = add(Access::LocalWrite);
    fresh();
  }
  uint32_t sink = 0;
  std::optional<Stream> stream_;
};

// DDP-3-07 DDP-4.1-05: the boundaries of messages are those of the sender, however its
// segments lie; the length of a segment is the LLP's.
TEST_F(MessageTest, BoundariesAreKept_DDP_3_04) {
  buffers(4);
  take(part(0, 20, false));
  take(part(20, 20, false));
  EXPECT_TRUE(user.delivered.empty());
  take(part(40, 7, true));
  take(tagged({.last = false, .stag = stag, .to = 0}, 30));
  take(tagged({.last = true, .stag = stag, .to = 30}, 5));
  take(part(0, 64, true, 2));
  EXPECT_EQ(user.delivered, (std::vector<Delivered>{{false, 47}, {true, 5}, {false, 64}}));
}

// DDP-5.2-06: messages without payload consume a buffer and are delivered.
TEST_F(MessageTest, EmptyMessages_DDP_4_4_01) {
  buffers(3);
  for (uint32_t msn = 1; msn <= 3; ++msn) take(part(0, 0, true, msn));
  take(tagged({.last = true, .stag = 0}, 0));
  EXPECT_EQ(user.delivered,
            (std::vector<Delivered>{{false, 0}, {false, 0}, {false, 0}, {true, 0}}));
  take(part(0, 0, true, 4));
  EXPECT_EQ(user.faults.at(0).code, 0x02) << "it needs a buffer as others do";
}

// A tagged message may start at any TO of the region.
TEST_F(MessageTest, EveryTaggedOffset_DDP_4_2_03) {
  for (uint64_t to = 0; to < 128; ++to) {
    fresh();
    take(tagged({.last = true, .stag = stag, .to = to}, 1));
    EXPECT_TRUE(user.faults.empty());
    EXPECT_EQ(memory[64 + to], payload[0]);
    EXPECT_EQ(std::count(memory.begin(), memory.end(), kGuard), 255);
  }
}

// DDP-5.2-05 DDP-5.3-02: with its last segment the message is whole. A gap, an overlap
// or a last segment that is not the highest is an error, and nothing is completed.
// UNH-DDP-08
TEST_F(MessageTest, LastSegmentEndsAWholeMessage_DDP_4_1_04) {
  struct Case {
    std::vector<std::pair<uint32_t, uint32_t>> parts;  // the last one has L
    bool whole;
  };
  for (const Case& c : {
           Case{{{0, 10}, {10, 10}}, true},
           Case{{{10, 10}, {0, 10}, {20, 1}}, true},   // the order of the others is free
           Case{{{0, 10}, {20, 10}}, false},           // a gap
           Case{{{20, 10}}, false},                    // begins late
           Case{{{0, 10}, {5, 10}}, false},            // overlap
           Case{{{0, 10}, {0, 10}, {20, 10}}, false},  // as many octets as there should be
           Case{{{10, 10}, {0, 10}}, false},           // L is not the highest
           Case{{{0, 10}, {10, 10}, {20, 0}}, true},   // an empty segment at the end
           Case{{{0, 10}, {11, 0}}, false},            // the same, one octet too far
       }) {
    fresh();
    buffers(1);
    for (size_t i = 0; i < c.parts.size(); ++i) {
      take(part(c.parts[i].first, c.parts[i].second, i + 1 == c.parts.size()));
    }
    EXPECT_EQ(user.delivered.size(), c.whole ? 1u : 0u);
    ASSERT_EQ(user.faults.size(), c.whole ? 0u : 1u);
    if (c.whole) continue;
    EXPECT_EQ(user.faults[0].layer, FaultLayer::Ddp);
    EXPECT_EQ(user.faults[0].type, kUntaggedBuffer);
    EXPECT_EQ(user.faults[0].code, 0x04);
  }
}

// L never came: the next MSN shows it.
// UNH-DDP-09
TEST_F(MessageTest, MessageWithoutItsLastSegment_DDP_7_1_03) {
  buffers(2);
  take(part(0, 10, false));
  take(part(0, 10, true, 2));
  EXPECT_TRUE(user.delivered.empty());
  EXPECT_EQ(user.faults.at(0).code, 0x03);
}

// DDP-5.3-03 DDP-4.1-05: five segments of three messages in every order of
// placement, one of them placed twice (a segment that was held is judged again): the same memory,
// each delivery once and in order.
// UNH-DDP-10
TEST_F(MessageTest, EveryOrderOfPlacement_DDP_3_05) {
  std::array<size_t, 5> order{0, 1, 2, 3, 4};
  do {
    for (const size_t again : {0, 4}) {
      fresh();
      buffers(2);
      const std::vector<std::vector<uint8_t>> ulpdus{
          part(0, 16, false), part(16, 16, true),
          tagged({.last = true, .stag = stag, .to = 64}, 20), part(0, 8, false, 2),
          part(8, 0, true, 2)};
      for (const size_t i : order) {
        const test::CutView cut(ulpdus[i]);
        stream_->place_ulpdu(cut.view(), false, {});
        if (i == again) stream_->place_ulpdu(cut.view(), false, {});
        EXPECT_TRUE(user.delivered.empty());
      }
      for (const auto& ulpdu : ulpdus) {
        const auto head = std::min<size_t>(ulpdu.size(), llp::kUlpduHeaderMax);
        stream_->deliver_ulpdu(base::ByteView(ulpdu).first(head),
                               static_cast<uint32_t>(ulpdu.size()), {});
      }
      EXPECT_EQ(user.delivered, (std::vector<Delivered>{{false, 32}, {true, 20}, {false, 8}}));
      EXPECT_TRUE(std::equal(payload.begin(), payload.begin() + 20, memory.begin() + 128));
    }
  } while (std::next_permutation(order.begin(), order.end()));
}

// RsvdULP that differs is not DDP's error; the layer above is told.
// UNH-DDP-13
TEST_F(MessageTest, RsvdUlpIsReportedNotJudged_DDP_4_3_03) {
  buffers(1);
  take(untagged({.last = false, .rsvd_ulp = 0x11, .msn = 1}, 4));
  take(untagged({.last = true, .rsvd_ulp = 0x22, .msn = 1, .mo = 4}, 4));
  EXPECT_TRUE(user.faults.empty());
  ASSERT_EQ(user.delivered.size(), 1u);
  EXPECT_EQ(user.uniform, (std::vector<bool>{false}));
}

// DDP-7.1-01: another ULP has other queues. Each has its own MSNs and buffers, its
// messages may lie between one another, and the first number past the last queue does not exist.
TEST_F(MessageTest, QueuesOfAnotherUlp_DDP_4_1_02) {
  for (const uint32_t queues : {1u, 3u, 5u, 17u}) {
    fresh();
    stream_.emplace(StreamConfig{.who = {kPd, kQp}, .queues = queues, .secret = 5}, table, user,
                    Tally{segments, octets, postponed});
    user.sges.assign(2, {{0, 128, sink}});
    for (uint32_t qn = 0; qn < queues; ++qn) stream_->provide(qn, 2);
    const auto each = [&](uint32_t msn, uint32_t mo, bool last) {
      for (uint32_t qn = 0; qn < queues; ++qn) {
        take(untagged({.last = last, .qn = qn, .msn = msn, .mo = mo}, 4));
      }
    };
    each(1, 0, false);
    EXPECT_TRUE(user.delivered.empty());
    each(1, 4, true);
    each(2, 0, true);
    EXPECT_EQ(user.delivered.size(), 2 * queues);
    EXPECT_TRUE(user.faults.empty());
    take(untagged({.last = true, .qn = queues, .msn = 1}, 4));
    EXPECT_EQ(user.faults.at(0).code, 0x01);
  }
}

// A fault is told, and that is all: the stream still asks the
// ULP for what it wants to send, and only the ULP ends it.
TEST_F(MessageTest, AFaultEndsNothingByItself_DDP_7_1_13) {
  take(tagged({.last = true, .stag = 1}, 8));
  ASSERT_EQ(user.faults.size(), 1u);
  test::CollectingWriter writer;
  EXPECT_EQ(stream_->pull_ulpdu(100, false, writer, {}).length, 0u);
  EXPECT_EQ(user.pulls, 1u) << "one more message may go out";
  EXPECT_EQ(user.ends, 0u);
  stream_->ended(StreamEnd::Aborted, {});
  EXPECT_EQ(user.ends, 1u);
}

// What comes behind the peer's graceful end is an error, is not placed, and is told
// as such, so that the ULP tears the stream down.
TEST_F(MessageTest, DataBehindTheEnd_DDP_6_2_1_02) {
  take(tagged({.last = true, .stag = stag, .to = 0}, 4));
  stream_->peer_finished(true, {});
  take(tagged({.last = true, .stag = stag, .to = 64}, 4));
  ASSERT_EQ(user.faults.size(), 1u);
  EXPECT_STREQ(user.faults[0].rule, "DDP-6.2.1-02");
  EXPECT_EQ(memory[64], payload[0]);
  EXPECT_EQ(memory[128], kGuard);
}

// DDP-4.1-07-a, DDP-7.1-01, DDP-7.1-02, DDP-7.1-03, DDP-7.1-04, DDP-7.1-12: each field of the
// untagged header at every kind of illegal value; the code of the first check that fails in the
// order of s.7.1.
// UNH-DDP-01 UNH-DDP-06 UNH-DDP-07 UNH-DDP-08
TEST_F(MessageTest, EveryUntaggedFieldAtIllegalValues_DDP_7_1_05) {
  struct Case {
    DdpUntaggedHeader header;
    uint8_t code;
  };
  std::vector<Case> cases;
  for (const uint8_t version : {0, 2, 3}) cases.push_back({{.version = version, .msn = 1}, 0x06});
  for (const uint32_t qn : {3u, 4u, 0x100u, 0x10000u, 0x80000000u, UINT32_MAX}) {
    cases.push_back({{.qn = qn, .msn = 1}, 0x01});
  }
  for (const uint32_t qn : {1u, 2u}) cases.push_back({{.qn = qn, .msn = 1}, 0x02});
  cases.push_back({{.msn = 3}, 0x02});
  for (const uint32_t msn : {0u, 4u, 5u, 0x80000000u, 0x80000001u, UINT32_MAX}) {
    cases.push_back({{.msn = msn}, 0x03});
  }
  for (const uint32_t mo : {129u, 200u, 0x80000000u, UINT32_MAX - 7, UINT32_MAX}) {
    cases.push_back({{.msn = 1, .mo = mo}, 0x04});
  }
  for (const uint32_t mo : {121u, 127u, 128u}) cases.push_back({{.msn = 1, .mo = mo}, 0x05});
  for (const Case& c : cases) {
    for (const bool last : {false, true}) {
      fresh();
      buffers(2);
      DdpUntaggedHeader header = c.header;
      header.last = last;
      take(untagged(header, 8));
      ASSERT_EQ(user.faults.size(), 1u);
      EXPECT_EQ(user.faults[0].type, kUntaggedBuffer);
      EXPECT_EQ(user.faults[0].code, c.code) << header.qn << " " << header.msn << " " << header.mo;
      EXPECT_EQ(user.report.length, 26u);
      EXPECT_TRUE(
          std::ranges::equal(user.report.view(), base::ByteView(untagged(header, 8)).first(18)));
      EXPECT_TRUE(untouched());
    }
  }
}

// DDP-7.1-07 DDP-7.1-08 DDP-4.1-07-a: the tagged header likewise.
// UNH-DDP-01 UNH-DDP-03 UNH-DDP-04
TEST_F(MessageTest, EveryTaggedFieldAtIllegalValues_DDP_7_1_10) {
  struct Case {
    DdpTaggedHeader header;
    uint8_t code;
  };
  std::vector<Case> cases;
  for (const uint8_t version : {0, 2, 3})
    cases.push_back({{.version = version, .stag = stag}, 0x04});
  for (int bit = 0; bit < 32; ++bit) cases.push_back({{.stag = stag ^ 1u << bit}, 0x00});
  for (const uint32_t value : {0u, 1u, 255u, UINT32_MAX}) cases.push_back({{.stag = value}, 0x00});
  for (const uint64_t to : {uint64_t{121}, uint64_t{128}, uint64_t{129}, uint64_t{1} << 32,
                            uint64_t{1} << 63, UINT64_MAX - 7}) {
    cases.push_back({{.stag = stag, .to = to}, 0x01});
  }
  for (const uint64_t to : {UINT64_MAX - 6, UINT64_MAX - 1, UINT64_MAX}) {
    cases.push_back({{.stag = stag, .to = to}, 0x03});
  }
  for (const Case& c : cases) {
    fresh();
    DdpTaggedHeader header = c.header;
    header.last = true;
    take(tagged(header, 8));
    ASSERT_EQ(user.faults.size(), 1u) << c.header.stag;
    EXPECT_EQ(user.faults[0].type, kTaggedBuffer);
    EXPECT_EQ(user.faults[0].code, c.code) << c.header.stag << " " << c.header.to;
    EXPECT_TRUE(untouched());
  }
}

}  // namespace
}  // namespace rnic::ddp

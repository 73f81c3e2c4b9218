// When an ACK is owed and what it reports, without a stack around it.

#include "tcp/ack_policy.hpp"

#include <gtest/gtest.h>

#include "base/timer_wheel.hpp"

namespace rnic::tcp {
namespace {

struct Acks {
  static constexpr uint32_t kSegment = 1000;

  explicit Acks(bool sack) { tcb.sack_ok = sack; }
  ~Acks() { policy.validate(); }
  /// In order, with nothing missing.
  bool in_order(uint32_t size, bool push = false) {
    tcb.rcv_nxt += size;
    return policy.note_in_order(size, push, now);
  }
  /// Behind a hole.
  bool beyond(uint64_t begin, uint64_t end) {
    const bool fresh = !committed.contains({begin, end});
    const bool had_holes = !committed.empty();
    committed.insert({begin, end});
    return policy.note_text({.size = static_cast<uint32_t>(end - begin),
                             .fresh = fresh,
                             .had_holes = had_holes,
                             .whole = {begin, end}},
                            now);
  }
  /// At RCV.NXT, up to `end`, with text beyond it.
  bool fill(uint64_t end) {
    const base::Range whole{tcb.rcv_nxt, end};
    tcb.rcv_nxt = end;
    return policy.note_text({.size = static_cast<uint32_t>(whole.size()),
                             .fresh = true,
                             .advanced = true,
                             .had_holes = true,
                             .whole = whole},
                            now);
  }
  /// \return the blocks of the ACK that goes out, as offsets
  std::vector<base::Range> send() {
    AckPolicy::SackBlocks blocks;
    std::vector<base::Range> named;
    for (uint32_t i = 0, count = policy.fill_sack(blocks); i < count; ++i) {
      named.push_back({static_cast<uint64_t>(tcb.rcv_offset(blocks[i].left)),
                       static_cast<uint64_t>(tcb.rcv_offset(blocks[i].right))});
    }
    policy.sent_alone(now);
    return named;
  }

  /// The ACK that went out is said again after these times, and then no more.
  void repeats(std::initializer_list<std::chrono::microseconds> times) {
    for (const auto after : times) {
      ASSERT_EQ(timers.at(Timer::DelayedAck), now + after);
      now += after;
      policy.delay_over();
      EXPECT_TRUE(policy.due());
      policy.validate();
      send();
      EXPECT_FALSE(policy.due());
    }
    EXPECT_FALSE(timers.runs(Timer::DelayedAck));
  }

  base::Now now = base::Now{} + std::chrono::seconds(1);
  base::TimerWheel wheel{base::Now{}};
  Config config;
  RangePool ranges{4};
  Tcb tcb;
  PooledRanges committed{ranges};
  Prediction prediction;
  Timers timers{wheel, nullptr, prediction};
  AckPolicy policy{tcb, committed, timers, config};
};

TEST(AckPolicy, EverySecondSegmentAndWhatIsPushedIsAcknowledgedAtOnce) {
  Acks a(true);
  EXPECT_FALSE(a.in_order(Acks::kSegment));
  EXPECT_EQ(a.timers.at(Timer::DelayedAck), a.now + a.config.delayed_ack);
  EXPECT_TRUE(a.in_order(Acks::kSegment));
  EXPECT_FALSE(a.policy.due_alone()) << "data may carry it";
  EXPECT_TRUE(a.send().empty());
  EXPECT_FALSE(a.policy.due());
  EXPECT_FALSE(a.timers.runs(Timer::DelayedAck));
  EXPECT_EQ(a.policy.last_ack_sent(), 2 * Acks::kSegment);
  EXPECT_TRUE(a.in_order(10, true));
}

TEST(AckPolicy, WhatIsOwedForPushedTextWaitsOnceWhereTheLatestOneRode) {
  Acks a(true);
  a.in_order(10, true);
  EXPECT_FALSE(a.policy.may_wait()) << "none has gone out yet";
  a.policy.sent();
  EXPECT_FALSE(a.policy.may_wait()) << "none is owed";
  a.in_order(10, true);
  EXPECT_TRUE(a.policy.may_wait());
  a.policy.put_off();
  EXPECT_TRUE(a.policy.due());
  EXPECT_FALSE(a.policy.may_wait());
  a.policy.sent();
  a.in_order(10, true);
  a.policy.ask();
  EXPECT_FALSE(a.policy.may_wait()) << "it is owed for another reason, too";
  a.policy.sent_alone(a.now);
  a.in_order(10, true);
  EXPECT_FALSE(a.policy.may_wait()) << "the latest one went alone";
}

TEST(AckPolicy, AFullSegmentIsWhatComes) {
  Acks a(true);
  a.in_order(Acks::kSegment, true);
  EXPECT_EQ(a.policy.rcv_mss(), Acks::kSegment);
  for (int i = 0; i < 3; ++i) a.in_order(400);
  EXPECT_EQ(a.policy.rcv_mss(), Acks::kSegment);
  a.in_order(400);
  EXPECT_EQ(a.policy.rcv_mss(), 400u) << "four of one size";
}

TEST(AckPolicy, TheNewestRangeLeadsAndAllAreNamed) {
  Acks a(true);
  for (uint64_t at = 1000; at <= 9000; at += 2000) EXPECT_TRUE(a.beyond(at, at + 1000));
  EXPECT_TRUE(a.policy.due_alone());
  const std::vector<base::Range> first = a.send();
  ASSERT_EQ(first.size(), 4u);
  EXPECT_EQ(first.front(), (base::Range{7000, 8000}))
      << "the oldest four, the newest of them first";
  ASSERT_TRUE(a.policy.due_alone()) << "the fifth";
  EXPECT_EQ(a.send().front(), (base::Range{9000, 10000}));
  EXPECT_FALSE(a.policy.due());
}

TEST(AckPolicy, ADuplicateIsReportedOnceAndLeads) {
  Acks a(true);
  a.beyond(1000, 2000);
  a.send();
  EXPECT_TRUE(a.beyond(1000, 2000));
  const std::vector<base::Range> blocks = a.send();
  ASSERT_EQ(blocks.size(), 2u) << "and the range that holds it";
  EXPECT_EQ(blocks[0], (base::Range{1000, 2000}));
  EXPECT_EQ(a.send().size(), 1u);
  a.tcb.rcv_nxt = 500;
  a.policy.note_duplicate(-10, 100);
  EXPECT_EQ(a.send().size(), 1u) << "from before the stream";
  EXPECT_FALSE(a.policy.note_partial_duplicate({300, 300}));
  EXPECT_TRUE(a.policy.note_partial_duplicate({300, 400}));
  EXPECT_EQ(a.send().front(), (base::Range{300, 400}));
}

TEST(AckPolicy, WithoutSackEachSegmentBehindAHoleIsOwedADuplicate) {
  Acks a(false);
  for (uint64_t at = 1000; at <= 3000; at += 1000) a.beyond(at, at + 1000);
  uint32_t sent = 0;
  while (a.policy.due()) {
    EXPECT_TRUE(a.send().empty());
    ++sent;
  }
  EXPECT_EQ(sent, 3u);
}

/// \return the ACK numbers of the parts that go before the next ACK, as offsets
std::vector<int64_t> parts(Acks& a) {
  std::vector<int64_t> found;
  while (a.policy.owes_parts()) found.push_back(a.tcb.rcv_offset(a.policy.take_part()));
  return found;
}

/// A segment came ahead of the order, and the hole before it was filled.
void hole(Acks& a) {
  a.beyond(a.tcb.rcv_nxt + 1000, a.tcb.rcv_nxt + 2000);
  a.send();
  a.committed.clear();
  a.in_order(2000);
  a.send();
}

void burst(Acks& a) {
  for (int i = 0; i < 12; ++i) a.in_order(Acks::kSegment);
}

/// A burst of 12 segments in order behind two holes near each other.
void burst_behind_holes(Acks& a) {
  hole(a);
  hole(a);
  burst(a);
}

TEST(AckPolicy, BehindTwoHolesTheFirstPartsOfABurstAreAcknowledgedToo) {
  Acks a(true);
  burst(a);
  EXPECT_FALSE(a.policy.owes_parts()) << "nothing was missing yet";
  a.send();
  hole(a);
  burst(a);
  EXPECT_FALSE(a.policy.owes_parts()) << "one hole is no habit";
  a.send();
  burst_behind_holes(a);
  const auto begin = static_cast<int64_t>(a.tcb.rcv_nxt) - 12'000;
  EXPECT_EQ(parts(a), (std::vector<int64_t>{begin + 4'000, begin + 8'000}))
      << "the last ones below 4,096 and 8,192 octets are 4 and 8";
  EXPECT_TRUE(a.policy.due()) << "the ACK of all of it";
  a.send();
  EXPECT_FALSE(a.policy.due());
  const int64_t next = begin + 12'000;
  a.in_order(Acks::kSegment);
  EXPECT_FALSE(a.policy.owes_parts()) << "one segment has no part";
  a.in_order(Acks::kSegment);
  EXPECT_EQ(parts(a), std::vector<int64_t>{next + 1'000}) << "of two, too, one ACK may be lost";
}

TEST(AckPolicy, NoPartEndsBelowTheLatestAck) {
  Acks a(true);
  burst_behind_holes(a);
  a.send();
  ASSERT_EQ(a.policy.last_ack_sent(), 16u * Acks::kSegment);
  // Seven segments come again, then one that adds an octet: 8,192 octets are passed.
  for (uint64_t at = 0; at < 7'000; at += Acks::kSegment) {
    a.policy.note_text({.size = Acks::kSegment, .whole = {at, at + Acks::kSegment}}, a.now);
  }
  a.tcb.rcv_nxt += 1;
  a.policy.note_text({.size = 2 * Acks::kSegment,
                      .fresh = true,
                      .advanced = true,
                      .whole = {a.tcb.rcv_nxt - 1, a.tcb.rcv_nxt}},
                     a.now);
  EXPECT_EQ(parts(a), std::vector<int64_t>{}) << "the peer knows of all but one octet";
}

TEST(AckPolicy, HolesFarFromEachOtherCallForNoParts) {
  constexpr uint64_t kNear = 384u << 10;
  for (const uint64_t apart : {kNear - 1, kNear}) {
    Acks a(true);
    hole(a);
    a.tcb.rcv_nxt += apart - 2000;
    a.send();
    hole(a);
    burst(a);
    EXPECT_EQ(a.policy.owes_parts(), apart < kNear) << apart;
  }
}

TEST(AckPolicy, PartsEnd384KilobytesBehindTheHole) {
  Acks a(true);
  burst_behind_holes(a);
  a.send();
  const uint32_t begin = 2000 + (384u << 10) - 4 * Acks::kSegment;
  a.tcb.rcv_nxt = begin;
  burst(a);
  EXPECT_EQ(parts(a), (std::vector<int64_t>{begin + 1'000, begin + 2'000}))
      << "another one would end beyond";
  a.send();
  burst(a);
  EXPECT_FALSE(a.policy.owes_parts());
}

TEST(AckPolicy, BehindAHoleAnAckThatNothingFollowsIsRepeatedTwice) {
  Acks a(true);
  burst(a);
  a.send();
  EXPECT_FALSE(a.timers.runs(Timer::DelayedAck)) << "nothing was missing yet";
  hole(a);
  burst(a);
  a.send();
  const base::Now repeat = a.now + std::chrono::microseconds(40);
  ASSERT_EQ(a.timers.at(Timer::DelayedAck), repeat);
  EXPECT_FALSE(a.policy.due());
  burst(a);
  a.now += std::chrono::microseconds(30);
  a.send();
  ASSERT_EQ(a.timers.at(Timer::DelayedAck), a.now + std::chrono::microseconds(40)) << "put off";
  a.repeats({std::chrono::microseconds(40), std::chrono::microseconds(80)});
  burst(a);
  a.send();
  EXPECT_TRUE(a.timers.runs(Timer::DelayedAck)) << "the next one";
}

TEST(AckPolicy, NoAckIsRepeatedThatAnswersOneSegment) {
  Acks a(true);
  hole(a);
  a.policy.delay_over();
  a.send();
  a.in_order(Acks::kSegment, true);
  a.send();
  EXPECT_FALSE(a.timers.runs(Timer::DelayedAck));
}

TEST(AckPolicy, TheFirstHoleIsToldOfAsUsual) {
  Acks a(true);
  burst(a);
  a.beyond(a.tcb.rcv_nxt + 1000, a.tcb.rcv_nxt + 2000);
  a.send();
  EXPECT_FALSE(a.policy.due());
  EXPECT_FALSE(a.timers.runs(Timer::DelayedAck));
}

// Of one segment and of several, of which the second ACK goes out at once.
TEST(AckPolicy, AHoleIsToldOfOnceMoreIfNothingFollows) {
  for (const uint32_t segments : {1u, 3u}) {
    SCOPED_TRACE(segments);
    Acks a(true);
    hole(a);
    burst(a);
    for (uint32_t i = 1; i <= segments; ++i) {
      a.beyond(a.tcb.rcv_nxt + i * 1000, a.tcb.rcv_nxt + (i + 1) * 1000);
    }
    a.send();
    if (segments > 1) {
      EXPECT_FALSE(a.timers.runs(Timer::DelayedAck)) << "the second is due";
      a.send();
    }
    EXPECT_FALSE(a.policy.due());
    a.repeats({std::chrono::microseconds(40)});
    const uint64_t hole = a.tcb.rcv_nxt;
    a.beyond(hole + 9000, hole + 10000);
    a.send();
    EXPECT_FALSE(a.timers.runs(Timer::DelayedAck)) << "enough for a hole";
    a.fill(hole + 1000);
    a.beyond(hole + 10000, hole + 11000);
    a.send();
    EXPECT_TRUE(a.timers.runs(Timer::DelayedAck)) << "this is another one";
  }
}

TEST(AckPolicy, RepeatingEndsFourMegabytesBehindTheHole) {
  constexpr uint64_t kLossy = 4u << 20;
  for (const uint64_t at : {kLossy - 1, kLossy}) {
    Acks a(true);
    hole(a);
    burst(a);
    a.tcb.rcv_nxt = at;
    a.timers.clear(Timer::DelayedAck);
    a.send();
    EXPECT_EQ(a.timers.runs(Timer::DelayedAck), at < kLossy) << at;
  }
}

TEST(AckPolicy, WithoutSackNoAckIsRepeated) {
  Acks a(false);
  hole(a);
  burst(a);
  a.send();
  EXPECT_FALSE(a.timers.runs(Timer::DelayedAck)) << "it would count as a sign of a loss";
}

TEST(AckPolicy, WithoutLossAcksABurstHasOne) {
  Acks a(true);
  a.config.loss_acks = 0;
  burst_behind_holes(a);
  EXPECT_FALSE(a.policy.owes_parts());
  a.send();
  EXPECT_FALSE(a.timers.runs(Timer::DelayedAck)) << "nor is it repeated";
  a.beyond(20'000, 21'000);
  a.beyond(21'000, 22'000);
  a.send();
  EXPECT_FALSE(a.policy.due());
  EXPECT_FALSE(a.timers.runs(Timer::DelayedAck)) << "with a hole neither";
  a.committed.clear();
  a.config.loss_acks = 1;
  burst_behind_holes(a);
  EXPECT_EQ(parts(a).size(), 1u);
}

TEST(AckPolicy, WhatIsReportedOfSeveralSegmentsBehindAHoleIsRepeatedOnce) {
  Acks a(true);
  a.beyond(1000, 2000);
  EXPECT_EQ(a.send(), (std::vector<base::Range>{{1000, 2000}}));
  EXPECT_FALSE(a.policy.due()) << "one segment, one ACK";
  for (uint64_t at = 2000; at < 6000; at += 1000) a.beyond(at, at + 1000);
  for (int i = 0; i < 2; ++i) {
    ASSERT_TRUE(a.policy.due_alone()) << i;
    EXPECT_EQ(a.send(), (std::vector<base::Range>{{1000, 6000}}));
  }
  EXPECT_FALSE(a.policy.due());
}

}  // namespace
}  // namespace rnic::tcp

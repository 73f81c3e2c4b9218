// RACK alone: what an arrival makes of the segments that were sent before it.

#include "tcp/rack.hpp"

#include <gtest/gtest.h>

#include <array>

#include "base/timer_wheel.hpp"
#include "tcp/config.hpp"

namespace rnic::tcp {
namespace {

using std::chrono::milliseconds;

constexpr uint32_t kSegment = 1000;

base::Now after(int64_t ms) { return base::Now{} + milliseconds(ms); }

/// Segments of one record each, sent a millisecond apart; the round trip is 40 ms.
struct Flight {
  explicit Flight(uint32_t segments) {
    tcb.sack_ok = true;
    rto.sample(milliseconds(40), after(0));
    for (uint32_t i = 0; i < segments; ++i) {
      Record r;
      r.length = kSegment;
      r.flags = record_flag::kSegmentStart;
      r.sent_at = after(i);
      board.push(r);
      tcb.snd_nxt += kSegment;
    }
  }
  ~Flight() {
    board.validate();
    rack.validate();
  }
  void sack(uint64_t number, base::Now now) {
    const uint64_t fack = board.fack();
    board.sack({number * kSegment, (number + 1) * kSegment},
               [&](const Record& r, uint64_t) { rack.delivered(r, std::nullopt, fack, now); });
  }

  base::TimerWheel wheel{base::Now{}};
  Config config;
  RecordPool pool{256, 4, 128};
  RangePool ranges{4};
  Tcb tcb;
  RtoEstimator rto{config};
  Prediction prediction;
  Timers timers{wheel, nullptr, prediction};
  Scoreboard board{tcb, pool, ranges, prediction};
  Rack rack{rto, board, timers};
};

TEST(Rack, WhatMayBeReorderedIsWaitedFor) {
  Flight f(4);
  f.sack(2, after(42));
  EXPECT_EQ(f.rack.xmit_at(), after(2));
  EXPECT_FALSE(f.rack.detect(false, after(42)));
  // Each is given a quarter of the least round trip beyond the one of the newest.
  EXPECT_EQ(f.timers.at(Timer::Reorder), after(1 + 40 + 10));
  EXPECT_TRUE(f.rack.detect(false, after(50)));
  EXPECT_EQ(f.board.lost_octets(), kSegment);
  EXPECT_TRUE(f.rack.detect(false, after(51)));
  EXPECT_EQ(f.board.lost_octets(), 2 * kSegment);
  EXPECT_FALSE(f.timers.runs(Timer::Reorder)) << "the last was sent later";
}

TEST(Rack, DupThreshHoldsUntilReorderingWasSeen) {
  Flight f(5);
  for (const uint64_t n : {1, 2, 3}) f.sack(n, after(45));
  EXPECT_TRUE(f.rack.detect(false, after(45)));
  EXPECT_EQ(f.board.lost_octets(), kSegment);
  EXPECT_FALSE(f.rack.reordering_seen());
  Flight late(5);
  for (const uint64_t n : {1, 3, 4, 2}) late.sack(n, after(45));
  EXPECT_TRUE(late.rack.reordering_seen());
  EXPECT_FALSE(late.rack.detect(false, after(45)));
  EXPECT_TRUE(late.timers.runs(Timer::Reorder));
}

TEST(Rack, AnEarlyAnswerToARetransmissionIsOfTheFirstTransmission) {
  Flight f(2);
  f.board.lose(0);
  f.board.resent(0, after(50));
  const Record again = f.board.front();
  f.rack.delivered(again, std::nullopt, 0, after(60));
  EXPECT_EQ(f.rack.xmit_at(), base::Now{}) << "10 ms are no round trip here";
  f.rack.delivered(again, f.tcb.timestamp(after(49)), 0, after(95));
  EXPECT_EQ(f.rack.xmit_at(), base::Now{}) << "the echo is older";
  f.rack.delivered(again, f.tcb.timestamp(after(50)), 0, after(95));
  EXPECT_EQ(f.rack.xmit_at(), after(50));
  EXPECT_TRUE(f.board.at(1).sent_at < f.rack.xmit_at());
  f.rack.undo();
  EXPECT_FALSE(f.rack.overtaken());
}

TEST(Rack, ADsackWidensTheWindowOnceARoundTripAndForSixteenRecoveries) {
  Flight f(3);
  f.rack.dsack();
  f.rack.dsack();
  EXPECT_EQ(f.rack.window_multiplier(), 2u);
  for (int i = 0; i < 15; ++i) f.rack.recovered();
  EXPECT_EQ(f.rack.window_multiplier(), 2u);
  f.rack.recovered();
  EXPECT_EQ(f.rack.window_multiplier(), 1u);
}

/// Segment 3 arrives 40 ms after it was sent, segment 1 so much later than it should have.
void come_late(Flight& f, base::Duration extent) {
  f.sack(3, after(43));
  f.sack(1, after(1 + 40) + extent);
}

TEST(Rack, WaitsAsLongAsReorderingWasSeenToLast) {
  for (const auto& [most, seen, window] :
       {std::array{milliseconds(2000), milliseconds(100), milliseconds(125)},
        std::array{milliseconds(110), milliseconds(100), milliseconds(110)},
        std::array{milliseconds(60), milliseconds(100), milliseconds(60)},
        // RFC 8985: a quarter of the least round trip, at most SRTT.
        std::array{milliseconds(0), milliseconds(100), milliseconds(10)},
        std::array{milliseconds(2000), milliseconds(4), milliseconds(10)}}) {
    Flight f(5);
    f.config.reordering_max = most;
    come_late(f, seen);
    EXPECT_EQ(f.rack.extent(), std::min(seen, most));
    EXPECT_FALSE(f.rack.detect(false, after(43)));
    EXPECT_EQ(f.timers.at(Timer::Reorder), after(2 + 40) + window) << most.count();
  }
}

TEST(Rack, ATransmissionThatComesBehindItsRepetitionTeachesToWait) {
  for (const bool on : {true, false}) {
    Flight f(2);
    f.config.reordering_max = milliseconds(on ? 1000 : 0);
    f.rack.dsack();  // so that the window is not zero: half a round trip
    f.board.lose(0);
    f.board.resent(0, after(70));
    f.rack.delivered(f.board.front(), f.tcb.timestamp(after(0)), 0, after(75));
    EXPECT_EQ(f.rack.extent(), milliseconds(on ? 20 + 5 : 0));
  }
}

TEST(Rack, WhatWasLearntIsDoubledByADsackAndLastsForSixteenRecoveries) {
  Flight f(5);
  f.config.reordering_max = milliseconds(1000);
  f.rack.dsack();
  EXPECT_EQ(f.rack.extent(), milliseconds(0)) << "a D-SACK alone measures nothing";
  come_late(f, milliseconds(100));
  f.tcb.snd_una = f.tcb.snd_nxt;  // another round trip
  f.rack.dsack();
  EXPECT_EQ(f.rack.extent(), milliseconds(200));
  f.tcb.snd_una = 0;
  for (int i = 0; i < 15; ++i) f.rack.recovered();
  EXPECT_EQ(f.rack.extent(), milliseconds(200));
  f.rack.recovered();
  EXPECT_EQ(f.rack.extent(), milliseconds(0));
}

TEST(Rack, ReorderingThatGoesOnIsNotForgotten) {
  Flight f(8);
  f.config.reordering_max = milliseconds(1000);
  come_late(f, milliseconds(100));
  for (int i = 0; i < 15; ++i) f.rack.recovered();
  f.sack(2, after(2 + 40 + 60));  // more than half of what is known
  f.rack.recovered();
  EXPECT_EQ(f.rack.extent(), milliseconds(100));
}

}  // namespace
}  // namespace rnic::tcp

// The detector of needless retransmissions, and the recovery that it judges, each alone.

#include "tcp/spurious_detector.hpp"

#include <gtest/gtest.h>

#include "tcp/recovery.hpp"

namespace rnic::tcp {
namespace {

using Verdict = SpuriousDetector::Verdict;

/// Ten segments in flight, lost or thought to be.
struct Lossy {
  static constexpr uint32_t kSegment = 1000;

  Lossy() {
    cc.set_smss(kSegment);
    cc.start(0);
    for (uint32_t i = 0; i < 10; ++i) {
      Record r;
      r.length = kSegment;
      r.flags = record_flag::kSegmentStart;
      board.push(r);
      tcb.snd_nxt += kSegment;
    }
  }
  ~Lossy() {
    board.validate();
    recovery.validate();
    detector.validate();
  }
  Verdict ack(uint64_t octets, bool new_data) {
    while (!board.empty() && board.front().end() <= tcb.snd_una + octets) board.pop_front();
    board.advance(tcb.snd_una + octets);
    tcb.snd_una += octets;
    AckResult result;
    result.acked = octets;
    result.duplicate = octets == 0;
    return detector.detect(result, recovery.point(), board.fack(), new_data);
  }
  void time_out() {
    detector.watch(true, now);
    recovery.time_out();
    board.lose_all();
  }

  base::Now now = base::Now{} + std::chrono::seconds(1);
  Config config;
  RecordPool pool{256, 4, 128};
  RangePool ranges{4};
  Tcb tcb;
  RtoEstimator rto{config};
  Congestion cc{config};
  Prediction prediction;
  Scoreboard board{tcb, pool, ranges, prediction};
  Recovery recovery{board, cc};
  SpuriousDetector detector{tcb, rto, cc, config};
};

TEST(SpuriousDetector, FrtoNeedsTwoAcksOfWhatWasSentOnce) {
  Lossy l;
  l.time_out();
  EXPECT_TRUE(l.detector.frto());
  EXPECT_EQ(l.ack(Lossy::kSegment, true), Verdict::None);
  EXPECT_EQ(l.cc.cwnd(), 2 * Lossy::kSegment);
  EXPECT_TRUE(l.detector.frto_sends());
  EXPECT_EQ(l.ack(Lossy::kSegment, true), Verdict::Frto);
  l.detector.undone(true, l.prediction);
  EXPECT_FALSE(l.detector.frto());
  EXPECT_TRUE(l.detector.adapts());
}

TEST(SpuriousDetector, FrtoEndsWithADuplicateOrWithoutNewData) {
  Lossy duplicate;
  duplicate.time_out();
  EXPECT_EQ(duplicate.ack(0, true), Verdict::None);
  EXPECT_FALSE(duplicate.detector.frto());
  Lossy nothing_new;
  nothing_new.time_out();
  EXPECT_EQ(nothing_new.ack(Lossy::kSegment, false), Verdict::None);
  EXPECT_FALSE(nothing_new.detector.frto());
}

TEST(SpuriousDetector, DsacksOfAllThatWasSentAgainTellThatNothingWasLost) {
  Lossy l;
  l.detector.watch(false, l.now);
  l.detector.retransmitted(2 * Lossy::kSegment);
  EXPECT_FALSE(l.detector.dsack(Lossy::kSegment));
  EXPECT_TRUE(l.detector.dsack(Lossy::kSegment));
  EXPECT_FALSE(l.detector.dsack(Lossy::kSegment)) << "once";
}

TEST(Recovery, TheRateFollowsWhatIsDeliveredAndTheFirstGoesOutAtOnce) {
  Lossy l;
  l.cc.on_loss(l.tcb.flight());
  l.board.lose(0);
  l.recovery.enter();
  EXPECT_EQ(l.recovery.recover_fs(), 10 * Lossy::kSegment);
  EXPECT_TRUE(l.recovery.forced());
  l.recovery.proportional_rate(0, Lossy::kSegment);
  EXPECT_EQ(l.cc.cwnd(), l.board.pipe() + Lossy::kSegment);
  l.recovery.retransmitted();
  l.recovery.sent(Lossy::kSegment);
  EXPECT_FALSE(l.recovery.complete());
  l.ack(10 * Lossy::kSegment, false);
  EXPECT_TRUE(l.recovery.complete());
  l.recovery.leave();
  EXPECT_TRUE(l.recovery.open());
  EXPECT_EQ(l.cc.cwnd(), l.cc.ssthresh());
}

}  // namespace
}  // namespace rnic::tcp

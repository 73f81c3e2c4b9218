// The detector of needless retransmissions, and the recovery that it judges, each alone.

#include "tcp/spurious_detector.hpp"

#include <gtest/gtest.h>

#include "lossy.hpp"

namespace rnic::tcp {
namespace {

using Verdict = SpuriousDetector::Verdict;

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

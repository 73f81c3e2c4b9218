#include "idle_acks.hpp"

#include <gtest/gtest.h>

#include <utility>

namespace rnic::simulation {
namespace {

class IdleAcksTest : public ::testing::Test {
 protected:
  void SetUp() override { EXPECT_FALSE(idle(100)); }
  bool idle(uint32_t ack, bool sack = false) {
    SaidBySegment says;
    says.ack = ack;
    return judge_.idle(std::move(says), true, sack);
  }
  void behind_hole(uint32_t end) { judge_.asked(Question::BehindHole, false, end); }

  IdleAcks judge_;
};

TEST_F(IdleAcksTest, AnAckThatSaysNothingNewIsIdle) { EXPECT_TRUE(idle(100)); }

// An observer does not know which segment brought the order forward, since the device may have
// dropped any. The judge takes both for segments behind a hole, so the ACK of the first leaves the
// second its own ACK.
TEST_F(IdleAcksTest, WhatLiesBeyondTheAckThatMovesIsOwedAnother) {
  behind_hole(120);
  behind_hole(150);
  EXPECT_FALSE(idle(120));
  EXPECT_FALSE(idle(120));
  EXPECT_TRUE(idle(120));
}

TEST_F(IdleAcksTest, WhatTheAckThatMovesCoversIsOwedNoOther) {
  behind_hole(120);
  behind_hole(150);
  EXPECT_FALSE(idle(150));
  EXPECT_TRUE(idle(150));
}

TEST_F(IdleAcksTest, SequenceNumbersWrap) {
  EXPECT_FALSE(idle(0xfffffff0));
  behind_hole(0xfffffff8);
  behind_hole(8);
  EXPECT_FALSE(idle(0xfffffff8));
  EXPECT_FALSE(idle(0xfffffff8));
  behind_hole(16);
  EXPECT_FALSE(idle(16));
  EXPECT_TRUE(idle(16));
}

TEST_F(IdleAcksTest, WhatBringsTheOrderForwardEndsWhatTheHoleWasOwed) {
  behind_hole(150);
  judge_.asked(Question::News, false, 120);
  EXPECT_FALSE(idle(120));
  EXPECT_TRUE(idle(120));
}

// RFC 2883: each duplicate is reported, in blocks that may be alike.
TEST_F(IdleAcksTest, WithSackWhatCameTwiceIsReportedBehindTheAckThatMoves) {
  judge_.asked(Question::BehindHole, true, 120);
  EXPECT_FALSE(idle(120, true));
  EXPECT_FALSE(idle(120, true)) << "of the duplicate";
  EXPECT_FALSE(idle(120, true)) << "once more, see below";
  EXPECT_FALSE(idle(120, true)) << "twice";
  EXPECT_TRUE(idle(120, true));
}

// Behind a hole a device says twice more what nothing follows, since the path may have lost it.
TEST_F(IdleAcksTest, BehindAHoleAnAckThatMovesMayBeSaidTwiceMore) {
  judge_.asked(Question::News, true, 120);
  EXPECT_FALSE(idle(120, true));
  EXPECT_TRUE(idle(120, true)) << "nothing was missing";
  judge_.asked(Question::BehindHole, true, 150);
  EXPECT_FALSE(idle(120, true)) << "of the hole";
  for (const uint32_t ack : {150u, 160u}) {
    EXPECT_FALSE(idle(ack, true));
    EXPECT_FALSE(idle(ack, true)) << "once more";
    EXPECT_FALSE(idle(ack, true)) << "twice more";
    EXPECT_TRUE(idle(ack, true)) << "not thrice more";
  }
}

}  // namespace
}  // namespace rnic::simulation

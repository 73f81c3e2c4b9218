// What ECN remembers, without a stack around it.

#include "tcp/ecn_state.hpp"

#include <gtest/gtest.h>

namespace rnic::tcp {
namespace {

struct Agreed {
  Agreed() { ecn.take_syn(true, false, true); }
  ~Agreed() { ecn.validate(); }
  Prediction prediction;
  EcnState ecn;
};

TEST(EcnState, IsOnWhereOneSideAsksAndTheOtherAgrees) {
  Prediction prediction;
  EcnState e;
  e.take_syn(true, true, true);
  EXPECT_FALSE(e.on()) << "an answer to what was not asked";
  e.offer();
  e.take_syn(true, true, false);
  EXPECT_TRUE(e.on());
  e.take_syn(false, true, true);
  EXPECT_FALSE(e.on());
  EXPECT_TRUE(e.fall_back());
  EXPECT_FALSE(e.fall_back()) << "known";
  Agreed late;
  EXPECT_TRUE(late.ecn.sends_ect());
  late.ecn.take_late_syn(false);
  EXPECT_TRUE(late.ecn.on());
  EXPECT_FALSE(late.ecn.sends_ect());
}

TEST(EcnState, AMarkIsEchoedUntilCwrComes) {
  Agreed a;
  EXPECT_TRUE(a.ecn.arrived(true, false, a.prediction)) << "told at once";
  EXPECT_FALSE(a.ecn.arrived(true, false, a.prediction));
  EXPECT_FALSE(a.ecn.arrived(false, false, a.prediction));
  EXPECT_TRUE(a.ecn.echoes());
  EXPECT_TRUE(a.ecn.arrived(false, true, a.prediction));
  EXPECT_FALSE(a.ecn.echoes());
  EXPECT_TRUE(a.ecn.arrived(true, true, a.prediction));
  EXPECT_TRUE(a.ecn.echoes()) << "CWR first, then CE";
}

TEST(EcnState, UnderDctcpWhatCameBeforeAChangeIsReportedAsItWasMarked) {
  using Change = EcnState::Change;
  Agreed a;
  EXPECT_EQ(a.ecn.arrived_dctcp(false, true, base::Seq32(1), a.prediction), Change::None);
  EXPECT_EQ(a.ecn.arrived_dctcp(true, false, base::Seq32(1), a.prediction), Change::Changed);
  EXPECT_FALSE(a.ecn.owes_acks()) << "nothing waits";
  EXPECT_EQ(a.ecn.arrived_dctcp(false, true, base::Seq32(2), a.prediction), Change::Changed);
  EXPECT_EQ(a.ecn.arrived_dctcp(true, true, base::Seq32(3), a.prediction), Change::Changed);
  const EcnState::Owed first = a.ecn.take_owed();
  EXPECT_EQ(first.ack, base::Seq32(2));
  EXPECT_TRUE(first.ece);
  const EcnState::Owed second = a.ecn.take_owed();
  EXPECT_EQ(second.ack, base::Seq32(3));
  EXPECT_FALSE(second.ece);
  for (uint32_t i = 0; i < 4; ++i) {
    EXPECT_EQ(a.ecn.arrived_dctcp(i % 2 != 0, true, base::Seq32(i), a.prediction), Change::Changed);
  }
  EXPECT_EQ(a.ecn.arrived_dctcp(false, true, base::Seq32(9), a.prediction), Change::Merged);
}

TEST(EcnState, MarksOfOneWindowAreAnsweredOnce) {
  Agreed a;
  EXPECT_FALSE(a.ecn.answered(0));
  a.ecn.note_reduction(1000);
  EXPECT_TRUE(a.ecn.take_cwr());
  EXPECT_FALSE(a.ecn.take_cwr());
  EXPECT_TRUE(a.ecn.answered(1000));
  EXPECT_FALSE(a.ecn.reduced_beyond(1000));
  EXPECT_TRUE(a.ecn.reduced_beyond(999));
  EXPECT_FALSE(a.ecn.answered(1001));
  a.ecn.undo();
  EXPECT_FALSE(a.ecn.answered(1000));
}

TEST(EcnState, HoldsAreCountedUpToSix) {
  Agreed a;
  for (uint32_t i = 0; i < 10; ++i) EXPECT_EQ(a.ecn.hold(), std::min(i, 6u));
  a.ecn.end_holds();
  EXPECT_EQ(a.ecn.hold(), 0u);
}

}  // namespace
}  // namespace rnic::tcp

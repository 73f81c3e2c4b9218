// The phases of loss recovery: each pair of them is legal or refused.

#include "tcp/recovery_phase.hpp"

#include "lossy.hpp"
#include "support/transitions.hpp"

namespace rnic::tcp {
namespace {

using Phase = RecoveryPhase;
using Table = decltype(kRecoveryTransitions);

TEST(RecoveryPhases, EachPairIsLegalOrNotAsALossAndATimeOutSay) {
  // Open, Recovery, TimedOut, Loss
  testing::expect_transitions(kRecoveryTransitions, {".xx.", "x.x.", "x.xx", "x.x."}, "....");
}

TEST(RecoveryPhases, BehindATimeOutTwoFollow) {
  EXPECT_FALSE(follows_timeout(Phase::Open));
  EXPECT_FALSE(follows_timeout(Phase::Recovery));
  EXPECT_TRUE(follows_timeout(Phase::TimedOut));
  EXPECT_TRUE(follows_timeout(Phase::Loss));
}

/// What leads to a phase, whatever the present one is.
void lead(Recovery& recovery, Phase to) {
  switch (to) {
    case Phase::Open: recovery.leave(); break;
    case Phase::Recovery: recovery.enter(); break;
    case Phase::TimedOut: recovery.time_out(); break;
    case Phase::Loss: recovery.progressed(); break;
  }
}

void begin(Recovery& recovery, Phase in) {
  if (in == Phase::Loss) recovery.time_out();
  if (in != Phase::Open) lead(recovery, in);
  ASSERT_EQ(recovery.phase(), in);
}

TEST(RecoveryPhases, EachLegalPairHappensAndEachOtherOneIsRefused) {
  for (size_t i = 0; i < Table::kStates; ++i) {
    for (size_t j = 0; j < Table::kStates; ++j) {
      SCOPED_TRACE(::testing::Message() << "from " << i << " to " << j);
      const auto from = static_cast<Phase>(i);
      const auto to = static_cast<Phase>(j);
      Lossy l;
      begin(l.recovery, from);
      if (kRecoveryTransitions.allows(from, to)) {
        lead(l.recovery, to);
        EXPECT_EQ(l.recovery.phase(), to);
      } else if (to == Phase::Loss) {
        l.recovery.progressed();  // the ACKs of any phase
        EXPECT_EQ(l.recovery.phase(), from);
      } else {
        EXPECT_DEATH(lead(l.recovery, to), "allows");
      }
    }
  }
}

TEST(RecoveryPhases, ANewAckLetsOthersThanTheEarliestOut) {
  Lossy l;
  l.time_out();
  EXPECT_TRUE(l.recovery.alone());
  EXPECT_TRUE(l.recovery.forced());
  l.recovery.progressed();
  EXPECT_FALSE(l.recovery.alone());
  EXPECT_TRUE(l.recovery.forced()) << "it is still to go out";
  l.recovery.retransmitted();
  l.recovery.time_out();
  EXPECT_TRUE(l.recovery.alone() && l.recovery.forced()) << "anew";
  l.recovery.undo();
  EXPECT_TRUE(l.recovery.open());
  EXPECT_FALSE(l.recovery.forced());
}

}  // namespace
}  // namespace rnic::tcp

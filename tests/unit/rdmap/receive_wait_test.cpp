#include "rdmap/receive_wait.hpp"

#include "support/transitions.hpp"

namespace rnic::rdmap {
namespace {

using std::chrono::milliseconds;

TEST(ReceiveWaits, EachPairOfStatesIsLegalOrNot) {
  // Idle, Going, CutOff, Barred
  testing::expect_transitions(kReceiveWaitTransitions, {".x.x", "xxx.", "...x", "...."}, "...x");
}

TEST(ReceiveWaits, AMessageWaitsUntilItHasItsReceiveOrItsTimeIsOver) {
  const base::Now start{milliseconds(7)};
  ReceiveWait wait{milliseconds(10)};
  EXPECT_TRUE(wait.is_allowed());
  EXPECT_FALSE(wait.is_going());
  wait.end();  // nothing waits
  EXPECT_FALSE(wait.is_over(start));
  wait.begin(3, start);
  EXPECT_TRUE(wait.is_going());
  EXPECT_EQ(wait.msn(), 3u);
  EXPECT_EQ(wait.deadline(), start + milliseconds(10));
  EXPECT_FALSE(wait.is_over(start + milliseconds(9)));
  EXPECT_TRUE(wait.is_over(start + milliseconds(10)));
  wait.begin(4, start + milliseconds(8));  // that of 3 has come
  EXPECT_EQ(wait.msn(), 4u);
  EXPECT_FALSE(wait.is_over(start + milliseconds(10)));
  wait.end();
  EXPECT_FALSE(wait.is_going());
  EXPECT_TRUE(wait.is_allowed());
}

TEST(ReceiveWaits, BehindTheEndNoneWaits) {
  const base::Now start{milliseconds(7)};
  ReceiveWait idle{milliseconds(10)};
  idle.end_all();
  EXPECT_FALSE(idle.is_allowed());
  EXPECT_FALSE(idle.is_over(start));
  ReceiveWait going{milliseconds(10)};
  going.begin(1, start);
  going.end_all();
  EXPECT_TRUE(going.is_going()) << "until somebody looks whether it is over";
  EXPECT_TRUE(going.is_over(start));
  EXPECT_FALSE(going.is_allowed());
  going.end_all();
  going.end();
  EXPECT_FALSE(going.is_going());
  EXPECT_FALSE(going.is_allowed());
  going.end();
  going.end_all();
  EXPECT_FALSE(going.is_over(start + milliseconds(100)));
  EXPECT_DEATH(going.begin(2, start), "is_allowed");
}

TEST(ReceiveWaits, WithoutALimitNoneWaits) {
  const ReceiveWait never{base::Duration(0)};
  EXPECT_FALSE(never.is_allowed());
}

}  // namespace
}  // namespace rnic::rdmap

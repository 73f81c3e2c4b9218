#include "rdmap/receive_wait.hpp"

#include <gtest/gtest.h>

namespace rnic::rdmap {
namespace {

using std::chrono::milliseconds;

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

TEST(ReceiveWaits, WithoutALimitNoneWaits) {
  ReceiveWait never{base::Duration(0)};
  EXPECT_FALSE(never.is_allowed());
  EXPECT_DEATH(never.begin(1, {}), "is_allowed");
}

}  // namespace
}  // namespace rnic::rdmap

// How long a worker looks for work before it sleeps (worker.idle = auto).

#include "verbs/spin_window.hpp"

#include <gtest/gtest.h>

namespace rnic::verbs {
namespace {

using std::chrono::microseconds;
using std::chrono::milliseconds;

class SpinWindowTest : public ::testing::Test {
 protected:
  /// \return how long the worker looks before it sleeps, with a look each microsecond
  base::Duration look() {
    const base::Now begun = now_;
    while (window_.looks_again(now_)) now_ += microseconds(1);
    return now_ - begun;
  }
  void sleep(base::Duration length) {
    now_ += length;
    window_.slept(length);
  }

  SpinWindow window_{SpinWindow::kLongest};
  base::Now now_{std::chrono::seconds(1)};
};

TEST_F(SpinWindowTest, GrowsWhileSleepsAreShort) {
  base::Duration before = look();
  EXPECT_EQ(before, SpinWindow::kFirst);
  for (int i = 0; i < 10; ++i) {
    sleep(SpinWindow::kShortSleep);
    const base::Duration next = look();
    EXPECT_EQ(next, std::min(SpinWindow::kLongest, 2 * before)) << i;
    before = next;
  }
  EXPECT_EQ(before, SpinWindow::kLongest);
}

TEST_F(SpinWindowTest, ShrinksWhileSleepsAreLong) {
  for (int i = 0; i < 10; ++i) {
    look();
    sleep(milliseconds(10));
  }
  EXPECT_EQ(look(), SpinWindow::kShortest);
  // 0.05 % of a core where something comes each 10 ms.
  sleep(microseconds(100));
  EXPECT_EQ(look(), 2 * SpinWindow::kShortest);
}

TEST_F(SpinWindowTest, BeginsAnewBehindWork) {
  EXPECT_TRUE(window_.looks_again(now_));
  now_ += SpinWindow::kFirst - microseconds(1);
  EXPECT_TRUE(window_.looks_again(now_));
  window_.worked();
  now_ += microseconds(1);
  EXPECT_EQ(look(), SpinWindow::kFirst);
}

TEST_F(SpinWindowTest, SleepsAtOnceWhereOthersNeedTheCore) {
  EXPECT_TRUE(window_.looks_again(now_));
  now_ += SpinWindow::kCoreLost;
  EXPECT_FALSE(window_.looks_again(now_));
  for (uint32_t i = 0; i < SpinWindow::kSleepsAtOnce; ++i) {
    EXPECT_EQ(look(), base::Duration(0)) << i;
    sleep(microseconds(20));
  }
  EXPECT_EQ(look(), SpinWindow::kFirst);
}

TEST_F(SpinWindowTest, SleepsAtOnceAsLongAsItHasToWaitForItsCore) {
  for (const uint32_t sleeps : {SpinWindow::kSleepsAtOnce / 2, SpinWindow::kSleepsAtOnce}) {
    window_.core_lost();
    for (uint32_t i = 0; i < sleeps; ++i) {
      EXPECT_EQ(look(), base::Duration(0)) << i;
      sleep(microseconds(20));
    }
  }
  EXPECT_EQ(look(), SpinWindow::kFirst);
}

// The one for whom it waits can run only when it sleeps.
TEST_F(SpinWindowTest, SleepsAtOnceWhereEachSleepIsShortBehindALongLook) {
  const auto look_and_sleep = [&](uint32_t times, base::Duration length) {
    for (uint32_t i = 0; i < times; ++i) {
      ASSERT_EQ(look(), SpinWindow::kLongest) << i;
      sleep(length);
    }
  };
  while (window_.window() < SpinWindow::kLongest) sleep(SpinWindow::kShortSleep);
  look_and_sleep(SpinWindow::kNoChance - 1, microseconds(10));
  look_and_sleep(1, SpinWindow::kShortSleep);
  look_and_sleep(SpinWindow::kNoChance - 1, microseconds(10));
  EXPECT_TRUE(window_.looks_again(now_));
  window_.worked();  // found by looking
  look_and_sleep(SpinWindow::kNoChance, microseconds(10));
  EXPECT_TRUE(window_.sleeps_at_once());
  for (uint32_t i = 0; i < SpinWindow::kSleepsAtOnce; ++i) {
    EXPECT_EQ(look(), base::Duration(0)) << i;
    sleep(microseconds(10));
  }
  EXPECT_EQ(look(), SpinWindow::kLongest);
}

// A turn that works for long has not lost its core.
TEST_F(SpinWindowTest, ALongTurnIsNoLostCore) {
  EXPECT_TRUE(window_.looks_again(now_));
  window_.worked();
  now_ += 2 * SpinWindow::kCoreLost;
  EXPECT_EQ(look(), SpinWindow::kFirst);
}

TEST_F(SpinWindowTest, NeverLooksForLongerThanItMay) {
  SpinWindow narrow(microseconds(2));
  for (int i = 0; i < 10; ++i) {
    EXPECT_TRUE(narrow.looks_again(now_));
    now_ += microseconds(2);
    EXPECT_FALSE(narrow.looks_again(now_));
    narrow.slept(i % 2 == 0 ? microseconds(1) : milliseconds(1));
  }
}

}  // namespace
}  // namespace rnic::verbs

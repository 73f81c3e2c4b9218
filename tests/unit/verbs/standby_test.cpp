// When a worker leaves its devices to the threads that poll (verbs::Standby).

#include "verbs/standby.hpp"

#include <gtest/gtest.h>

namespace rnic::verbs {
namespace {

using std::chrono::microseconds;

constexpr base::Duration kNone{0};

class StandbyTest : public ::testing::Test {
 protected:
  /// A port wakes the worker just after another thread has driven.
  base::Duration woken() {
    now_ += microseconds(100);
    return standby_.next(now_, now_);
  }
  /// A pause, behind which nobody has driven for so long that the worker does.
  void pause_and_drive(bool found) {
    EXPECT_GT(woken(), kNone);
    EXPECT_EQ(standby_.next(now_ + Standby::kRecent + microseconds(1), now_), kNone);
    standby_.drove(found);
  }
  /// \return wake-ups until the next pause
  uint32_t without_pause() {
    uint32_t count = 0;
    while (woken() == kNone) {
      standby_.drove(true);
      ++count;
    }
    standby_.called();
    return count;
  }

  Standby standby_;
  base::Now now_{std::chrono::seconds(1)};
};

TEST_F(StandbyTest, PausesForLongerAndLongerWhileOthersDrive) {
  base::Duration expected = Standby::kFirst;
  for (int i = 0; i < 10; ++i) {
    EXPECT_EQ(woken(), expected) << i;
    expected = std::min(Standby::kLongest, 2 * expected);
  }
  EXPECT_EQ(expected, Standby::kLongest);
}

TEST_F(StandbyTest, DrivesWhereNobodyElseHasLately) {
  EXPECT_EQ(standby_.next(now_, base::Now()), kNone) << "nobody ever has";
  EXPECT_EQ(standby_.next(now_, now_ - Standby::kRecent - microseconds(1)), kNone);
  EXPECT_EQ(standby_.next(now_, now_ - Standby::kRecent), Standby::kFirst);
}

TEST_F(StandbyTest, BeginsWithAShortPauseOnceItWasCalled) {
  EXPECT_EQ(woken(), Standby::kFirst);
  EXPECT_EQ(woken(), 2 * Standby::kFirst);
  standby_.called();
  standby_.drove(true);
  EXPECT_EQ(woken(), Standby::kFirst) << "that there was work is no mistake of the pause";
}

TEST_F(StandbyTest, DrivesForAWhileWhereAPauseWasAMistake) {
  uint32_t expected = Standby::kFewest;
  for (int i = 0; i < 10; ++i) {
    pause_and_drive(true);
    EXPECT_EQ(without_pause(), expected) << i;
    expected = std::min(Standby::kMost, 2 * expected);
  }
  EXPECT_EQ(expected, Standby::kMost);
  // Pauses behind which nothing lay there win its trust back.
  pause_and_drive(false);
  pause_and_drive(false);
  EXPECT_EQ(without_pause(), 0u);
  pause_and_drive(true);
  EXPECT_EQ(without_pause(), Standby::kMost / 2);
}

TEST_F(StandbyTest, WakeUpsThatFindNothingWinItsTrustBack) {
  for (int i = 0; i < 10; ++i) {
    pause_and_drive(true);
    if (i < 9) without_pause();
  }
  // Somebody who polls was faster, each time.
  uint32_t count = 0;
  for (; woken() == kNone; ++count) standby_.drove(false);
  EXPECT_LE(count, 10u) << "of " << Standby::kMost;
}

TEST_F(StandbyTest, GivesWayToLooksInVain) {
  EXPECT_FALSE(standby_.gives_way(now_, Standby::kFewest - 1));
  EXPECT_TRUE(standby_.gives_way(now_, Standby::kFewest));
  EXPECT_EQ(standby_.next(now_, now_), Standby::kFirst);
}

TEST_F(StandbyTest, GivesWayLaterWhereItWasSoonBack) {
  uint32_t patience = Standby::kFewest;
  for (int i = 0; i < 10; ++i) {
    EXPECT_FALSE(standby_.gives_way(now_, patience - 1)) << i;
    EXPECT_TRUE(standby_.gives_way(now_, patience)) << i;
    now_ += Standby::kWorthIt - microseconds(1);
    standby_.came_back(now_);
    patience = std::min(Standby::kMost, 2 * patience);
  }
  EXPECT_EQ(patience, Standby::kMost);
  EXPECT_TRUE(standby_.gives_way(now_, patience));
  now_ += Standby::kWorthIt;
  standby_.came_back(now_);
  EXPECT_TRUE(standby_.gives_way(now_, patience / 2)) << "that was worth it";
}

TEST_F(StandbyTest, GivesWayAlsoBehindMistakes) {
  pause_and_drive(true);
  EXPECT_TRUE(standby_.gives_way(now_, Standby::kFewest));
  EXPECT_EQ(standby_.next(now_, now_), Standby::kFirst);
}

TEST_F(StandbyTest, TurnsThatBelongToNoPauseSayNothing) {
  for (int i = 0; i < 100; ++i) standby_.drove(true);
  EXPECT_EQ(woken(), Standby::kFirst);
}

}  // namespace
}  // namespace rnic::verbs

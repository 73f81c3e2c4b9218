#include "dpdk/best_window.hpp"

#include <gtest/gtest.h>

namespace rnic::dpdk {
namespace {

using base::from_nanos;

constexpr int64_t kMicro = 1000;

/// `rate` a microsecond, from `from` to `to` microseconds, a sample each `step`.
void feed(BestWindow& window, uint64_t& count, int64_t from, int64_t to, uint64_t rate,
          int64_t step = 10) {
  for (int64_t at = from; at <= to; at += step) {
    window.sample(from_nanos(at * kMicro), count + 64, count);
    count += rate * static_cast<uint64_t>(step);
  }
}

TEST(BestWindow, TakesTheFastestPiece) {
  BestWindow window;
  window.begin_run();
  uint64_t count = 0;
  feed(window, count, 0, 2000, 1);
  feed(window, count, 2010, 2500, 5);
  feed(window, count, 2510, 6000, 2);
  EXPECT_DOUBLE_EQ(window.per_second(), 5e6);
}

TEST(BestWindow, HasNoneInLessThanTheShortest) {
  BestWindow window;
  window.begin_run();
  uint64_t count = 0;
  feed(window, count, 0, 290, 5);
  EXPECT_EQ(window.windows(), 0u);
  EXPECT_EQ(window.per_second(), 0);
}

TEST(BestWindow, LeavesOutWhatAPauseIsIn) {
  BestWindow window;
  window.begin_run();
  uint64_t count = 0;
  feed(window, count, 0, 200, 5);
  feed(window, count, 2000, 2200, 5);
  EXPECT_EQ(window.windows(), 0u);
}

TEST(BestWindow, DoesNotReachAcrossRuns) {
  BestWindow window;
  uint64_t count = 0;
  window.begin_run();
  feed(window, count, 0, 250, 5);
  window.begin_run();
  feed(window, count, 260, 500, 5);
  EXPECT_EQ(window.windows(), 0u);
}

/// What was on its way before is done in the window, and was not begun in it.
TEST(BestWindow, GainsNothingFromWhatWasOnItsWay) {
  BestWindow window;
  window.begin_run();
  window.sample(from_nanos(0), 1000, 0);
  window.sample(from_nanos(500 * kMicro), 1500, 1500);
  EXPECT_DOUBLE_EQ(window.per_second(), 1e6);
}

TEST(BestWindow, GainsNothingFromWhatOnlyBegins) {
  BestWindow window;
  window.begin_run();
  window.sample(from_nanos(0), 0, 0);
  window.sample(from_nanos(500 * kMicro), 1500, 500);
  EXPECT_DOUBLE_EQ(window.per_second(), 1e6);
}

/// Messages that take 0.5 ms each: four are a window of 2 ms.
TEST(BestWindow, OfFewIsAsLongAsTheyTake) {
  BestWindow window(4);
  window.begin_run();
  for (uint64_t i = 0; i <= 8; ++i) {
    window.sample(from_nanos(static_cast<int64_t>(i) * 500 * kMicro), i + 16, i);
  }
  EXPECT_DOUBLE_EQ(window.per_second(), 2000);
}

TEST(BestWindow, LeavesOutSamplesThatItHasNoRoomFor) {
  BestWindow window;
  window.begin_run();
  for (uint64_t i = 0; i <= 1'000'000; ++i) {
    window.sample(from_nanos(static_cast<int64_t>(i)), i, i);
  }
  EXPECT_NEAR(window.per_second(), 1e9, 1e7);
}

}  // namespace
}  // namespace rnic::dpdk

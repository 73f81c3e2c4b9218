// Notification moderation: how many completions one wake-up stands for, and when it comes at the
// latest.

#include "device/notify_moderator.hpp"

#include <gtest/gtest.h>

#include <chrono>
#include <memory>
#include <utility>

namespace rnic::device {
namespace {

using std::chrono::microseconds;
using std::chrono::milliseconds;

/// A thread that waits for completions, or does not.
struct Sleeper {
  bool waits = true;
  bool for_urgent_only = false;
  uint32_t woken = 0;
};

class Listener final : public QueueListener {
 public:
  explicit Listener(Sleeper& sleeper) : sleeper_(sleeper) {}
  void added(bool urgent) override {
    if (!awaits(urgent)) return;
    ++sleeper_.woken;
    sleeper_.waits = false;
  }
  [[nodiscard]] bool awaits(bool urgent) const override {
    return sleeper_.waits && (urgent || !sleeper_.for_urgent_only);
  }

 private:
  Sleeper& sleeper_;
};

class Moderation : public ::testing::Test {
 protected:
  Moderation() : timers_(now_), moderator_({.count = 4, .period = milliseconds(1)}, timers_) {
    moderator_.set_listener(std::make_unique<Listener>(sleeper_));
  }
  void add(uint32_t n, bool urgent = false) {
    for (uint32_t i = 0; i < n; ++i) moderator_.added(urgent);
  }
  void advance(base::Duration span) {
    now_ += span;
    timers_.begin(now_);
    timers_.on_timers(now_);
  }

  base::Now now_ = base::from_nanos(1'000'000);
  Sleeper sleeper_;
  NotifyTimers timers_;
  NotifyModerator moderator_;
};

TEST_F(Moderation, WakesAtTheCount) {
  add(3);
  EXPECT_EQ(sleeper_.woken, 0u);
  add(1);
  EXPECT_EQ(sleeper_.woken, 1u);
  EXPECT_EQ(timers_.next_deadline(), base::kNever) << "nothing is kept back";
}

TEST_F(Moderation, WakesWhenTheTimeIsOverCountedFromTheFirst) {
  add(1);
  advance(microseconds(900));
  add(1);
  EXPECT_EQ(sleeper_.woken, 0u);
  EXPECT_LE(timers_.next_deadline(), base::from_nanos(2'000'000) + microseconds(33));
  advance(microseconds(150));
  EXPECT_EQ(sleeper_.woken, 1u);
}

TEST_F(Moderation, CountsFromTheMomentThatSomebodyWaits) {
  sleeper_.waits = false;
  add(10);
  EXPECT_EQ(timers_.next_deadline(), base::kNever);
  sleeper_.waits = true;
  add(3);
  EXPECT_EQ(sleeper_.woken, 0u);
  add(1);
  EXPECT_EQ(sleeper_.woken, 1u);
}

TEST_F(Moderation, CountsWhatIsWaitedForAlone) {
  sleeper_.for_urgent_only = true;
  add(10);
  add(3, true);
  EXPECT_EQ(sleeper_.woken, 0u);
  add(10);
  EXPECT_EQ(sleeper_.woken, 0u);
  add(1, true);
  EXPECT_EQ(sleeper_.woken, 1u);
}

// A caller that waits for urgent completions, and then for any, is told of the urgent ones that
// were kept back.
TEST_F(Moderation, KeepsWhatItHasWhenMoreIsWaitedFor) {
  sleeper_.for_urgent_only = true;
  add(2, true);
  sleeper_.for_urgent_only = false;
  add(2);
  EXPECT_EQ(sleeper_.woken, 1u);
}

TEST_F(Moderation, TellsWhatIsKeptBackWhenItIsChanged) {
  add(2);
  moderator_.set({.count = 1});
  EXPECT_EQ(sleeper_.woken, 1u);
  sleeper_.waits = true;
  add(1);
  EXPECT_EQ(sleeper_.woken, 2u);
  EXPECT_EQ(timers_.next_deadline(), base::kNever);
}

TEST_F(Moderation, LeavesNoTimerBehind) {
  {
    NotifyModerator other({.count = 2, .period = milliseconds(1)}, timers_);
    other.set_listener(std::make_unique<Listener>(sleeper_));
    other.added(false);
    EXPECT_NE(timers_.next_deadline(), base::kNever);
  }
  EXPECT_EQ(timers_.next_deadline(), base::kNever);
}

}  // namespace
}  // namespace rnic::device

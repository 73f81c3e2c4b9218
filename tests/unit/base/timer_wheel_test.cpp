#include "base/timer_wheel.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <memory>
#include <utility>
#include <vector>

#include "base/prng.hpp"

namespace rnic::base {
namespace {

constexpr int64_t kTick = int64_t{1} << TimerWheel::kTickShift;

struct Timer {
  TimerNode node;
  std::multimap<Now, Timer*>::iterator entry;
};

/// The wheel beside a sorted map; every expiry is checked against the map.
class Model {
 public:
  Model(size_t timers, uint64_t seed, Now start)
      : prng_(seed), now_(start), wheel_(start), timers_(timers) {
    for (Timer& timer : timers_) {
      timer.node.owner = &timer;
      timer.entry = model_.end();
    }
  }
  ~Model() {
    for (Timer& timer : timers_) cancel(timer);
  }

  Timer& any() { return timers_[prng_.below(timers_.size())]; }

  void arm(Timer& timer, Now deadline) {
    forget(timer);
    wheel_.arm(timer.node, deadline);
    // A deadline that has passed is due at once.
    if (deadline != kNever) timer.entry = model_.emplace(std::max(deadline, now_), &timer);
  }
  void cancel(Timer& timer) {
    forget(timer);
    wheel_.cancel(timer.node);
  }

  /// Deadlines from the past to far beyond the wheel's horizon.
  Now random_deadline() {
    const uint64_t scale = uint64_t{1} << prng_.below(42);
    const auto ahead = static_cast<int64_t>(prng_.below(scale) * 2);
    return prng_.chance(0.05) ? now_ - Duration(std::min<int64_t>(ahead, nanos(now_)))
                              : now_ + Duration(ahead);
  }

  /// expire() at `now`; callbacks arm and cancel when `lively`.
  void expire(Now now, bool lively) {
    now_ = now;
    wheel_.expire(now, [&](TimerNode& node) {
      Timer& timer = *static_cast<Timer*>(node.owner);
      ASSERT_FALSE(node.armed());
      ASSERT_NE(timer.entry, model_.end()) << "fired without being armed";
      EXPECT_LE(timer.entry->first, now) << "fired early";
      forget(timer);
      ++fired;
      if (lively && prng_.chance(0.5)) arm(timer, random_deadline());
      if (lively && prng_.chance(0.2)) cancel(any());
      if (lively && prng_.chance(0.2)) arm(any(), random_deadline());
    });
    check();
  }

  void check() {
    ASSERT_EQ(wheel_.armed(), model_.size());
    if (model_.empty()) {
      ASSERT_EQ(wheel_.next_deadline(), kNever);
      ASSERT_FALSE(wheel_.due(now_));
      return;
    }
    if (prng_.chance(0.5)) {  // otherwise what due() remembers stays as old as it is
      const Now next = wheel_.next_deadline();
      ASSERT_TRUE(wheel_.due(next));
      ASSERT_FALSE(wheel_.due(next - Duration(1)));
      ASSERT_EQ(wheel_.due(now_), next <= now_);
    }
    // Never later than the earliest timer by more than the tick that it is rounded up to.
    const Now earliest = std::max(model_.begin()->first, now_);
    ASSERT_LE(wheel_.next_deadline(), earliest + Duration(kTick));
  }

  /// Nothing that was due a whole tick ago may still wait.
  void check_nothing_late(Now now) {
    if (!model_.empty()) {
      ASSERT_GT(model_.begin()->first + Duration(kTick), now);
    }
  }

  /// A worker that sleeps until next_deadline().
  void run_idle(Now end) {
    int steps = 0;
    while (wheel_.next_deadline() <= end) {
      const Now at = std::max(now_, wheel_.next_deadline());
      const size_t before = fired;
      expire(at, false);
      check_nothing_late(at);
      if (testing::Test::HasFatalFailure()) return;
      if (fired == before) ++idle_wakeups;
      ASSERT_LT(++steps, 2'000'000);
    }
    expire(end, false);
    check_nothing_late(end);
  }

  [[nodiscard]] Now now() const { return now_; }
  [[nodiscard]] Prng& prng() { return prng_; }
  [[nodiscard]] TimerWheel& wheel() { return wheel_; }
  [[nodiscard]] size_t waiting() const { return model_.size(); }

  size_t fired = 0;
  size_t idle_wakeups = 0;

 private:
  void forget(Timer& timer) {
    if (timer.entry != model_.end()) model_.erase(timer.entry);
    timer.entry = model_.end();
  }

  Prng prng_;
  Now now_;
  TimerWheel wheel_;
  std::multimap<Now, Timer*> model_;
  std::vector<Timer> timers_;
};

TEST(TimerWheel, RandomAgainstASortedMap) {
  for (uint64_t seed = 1; seed <= 8; ++seed) {
    Model model(200, seed, from_nanos(static_cast<int64_t>(seed * 987'654'321)));
    for (int step = 0; step < 20'000; ++step) {
      const uint64_t what = model.prng().below(10);
      if (what < 4) {
        model.arm(model.any(), model.random_deadline());
      } else if (what < 6) {
        model.cancel(model.any());
      } else {
        const auto ahead = model.prng().below(uint64_t{1} << model.prng().below(40));
        model.expire(model.now() + Duration(static_cast<int64_t>(ahead)), true);
        model.expire(model.now(), false);
        model.check_nothing_late(model.now());
      }
      model.check();
      model.wheel().validate();
      ASSERT_FALSE(HasFatalFailure()) << "seed " << seed << " step " << step;
    }
    EXPECT_GT(model.fired, 1000u);
  }
}

TEST(TimerWheel, ASleeperIsNeverLateByMoreThanATick) {
  for (uint64_t seed = 100; seed < 108; ++seed) {
    Model model(100, seed, from_nanos(static_cast<int64_t>(seed * seed * 1'000'003)));
    for (int round = 0; round < 20; ++round) {
      for (int i = 0; i < 30; ++i) model.arm(model.any(), model.random_deadline());
      const Now end = model.now() + Duration(static_cast<int64_t>(model.prng().below(1ull << 41)));
      model.run_idle(end);
      ASSERT_FALSE(HasFatalFailure()) << "seed " << seed << " round " << round;
    }
  }
}

TEST(TimerWheel, CountsItsTimersAnew) {
  TimerWheel wheel(from_nanos(0));
  TimerNode near;
  TimerNode far;
  wheel.arm(near, from_nanos(3 * kTick));
  wheel.arm(far, from_nanos(200 * kTick));
  wheel.validate();
  const auto dies_with = [&](auto& field, auto value, const char* why) {
    const auto before = std::exchange(field, value);
    EXPECT_DEATH(wheel.validate(), why);
    field = before;
  };
  dies_with(near.bucket, uint16_t{4}, "bucket");
  dies_with(near.prev, &far, "prev");
  dies_with(near.deadline, from_nanos(2 * kTick), "due");
  dies_with(far.deadline, from_nanos(100 * kTick), "due");
  wheel.cancel(near);
  wheel.cancel(far);
  wheel.validate();
}

TEST(TimerWheel, FarDeadlinesArrive) {
  Model model(3, 1, from_nanos(0));
  model.arm(model.any(), from_nanos(0) + std::chrono::hours(24));
  model.run_idle(from_nanos(0) + std::chrono::hours(24) - Duration(1));
  ASSERT_EQ(model.fired, 0u);
  model.run_idle(from_nanos(0) + std::chrono::hours(24) + Duration(kTick));
  ASSERT_EQ(model.fired, 1u);
  EXPECT_LT(model.idle_wakeups, 1000u);
}

TEST(TimerWheel, EveryDistanceAroundTheLevelBoundaries) {
  for (const int64_t around : {64, 64 * 64, 64 * 64 * 64, 64 * 64 * 64 * 64}) {
    for (const int64_t start :
         {int64_t{0}, int64_t{1}, int64_t{63}, int64_t{64}, around - 1, around}) {
      for (int64_t ticks = around - 2; ticks <= around + 2; ++ticks) {
        Model model(1, 1, from_nanos(start * kTick));
        model.arm(model.any(), from_nanos((start + ticks) * kTick));
        model.run_idle(from_nanos((start + ticks) * kTick - 1));
        ASSERT_EQ(model.fired, 0u) << start << " + " << ticks;
        model.run_idle(from_nanos((start + ticks + 1) * kTick));
        ASSERT_EQ(model.fired, 1u) << start << " + " << ticks;
      }
    }
  }
}

TEST(TimerWheel, JumpsOfTimeAfterLongSilence) {
  Model model(50, 5, from_nanos(12345));
  for (int i = 0; i < 40; ++i) model.arm(model.any(), model.random_deadline());
  model.expire(model.now() + std::chrono::hours(3), false);
  EXPECT_EQ(model.waiting(), 0u);
}

TEST(TimerWheel, IsBehindOnceATick) {
  TimerWheel wheel(from_nanos(0));
  const auto nothing = [](TimerNode&) { FAIL(); };
  for (int64_t tick = 0; tick < 3; ++tick) {
    EXPECT_TRUE(wheel.is_behind(from_nanos(tick * kTick)));
    wheel.expire(from_nanos(tick * kTick), nothing);
    EXPECT_FALSE(wheel.is_behind(from_nanos(tick * kTick)));
    EXPECT_FALSE(wheel.is_behind(from_nanos(tick * kTick + kTick - 1)));
  }
}

TEST(TimerWheel, NeverDisarms) {
  TimerWheel wheel(from_nanos(0));
  TimerNode node;
  wheel.arm(node, from_nanos(1'000'000));
  wheel.arm(node, kNever);
  EXPECT_FALSE(node.armed());
  EXPECT_EQ(wheel.armed(), 0u);
  EXPECT_EQ(wheel.next_deadline(), kNever);
}

TEST(TimerWheel, ACallbackMayCancelANodeThatIsDueInTheSameCall) {
  TimerWheel wheel(from_nanos(0));
  TimerNode a;
  TimerNode b;
  wheel.arm(a, from_nanos(100));
  wheel.arm(b, from_nanos(100));
  int fired = 0;
  wheel.expire(from_nanos(10 * kTick), [&](TimerNode& node) {
    ++fired;
    wheel.cancel(&node == &a ? b : a);
  });
  EXPECT_EQ(fired, 1);
  EXPECT_EQ(wheel.armed(), 0u);
}

}  // namespace
}  // namespace rnic::base

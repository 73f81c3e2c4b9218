// The timers of a connection: the wheel's node waits for the earliest of them.

#include "tcp/timers.hpp"

#include <gtest/gtest.h>

#include "base/timer_wheel.hpp"

namespace rnic::tcp {
namespace {

using std::chrono::milliseconds;

base::Now at(int64_t ms) { return base::Now{} + milliseconds(ms); }

struct Wheel {
  /// How often the node fired up to `now`.
  uint32_t fired_by(base::Now now) {
    uint32_t count = 0;
    wheel.expire(now, [&](base::TimerNode& node) {
      EXPECT_EQ(node.owner, this);
      ++count;
    });
    return count;
  }
  base::TimerWheel wheel{base::Now{}};
  Prediction prediction;
  Timers timers{wheel, this, prediction};
};

TEST(Timers, TheNodeWaitsForTheEarliest) {
  Wheel w;
  EXPECT_EQ(w.timers.earliest(), base::kNever);
  w.timers.set(Timer::Rto, at(200));
  w.timers.set(Timer::Probe, at(50));
  w.timers.set(Timer::Life, at(900));
  w.timers.validate();
  EXPECT_EQ(w.timers.earliest(), at(50));
  EXPECT_TRUE(w.timers.due(Timer::Probe, at(50)));
  EXPECT_FALSE(w.timers.due(Timer::Rto, at(50)));
  EXPECT_FALSE(w.timers.runs(Timer::Persist));
  EXPECT_EQ(w.fired_by(at(40)), 0u);
  EXPECT_EQ(w.fired_by(at(51)), 1u);
  w.timers.clear(Timer::Probe);
  w.timers.wait();
  w.timers.validate();
  EXPECT_EQ(w.fired_by(at(199)), 0u);
  EXPECT_EQ(w.fired_by(at(201)), 1u);
}

TEST(Timers, OneThatIsPutOffOrClearedCostsAnExpiryForNothing) {
  Wheel w;
  w.timers.set(Timer::Rto, at(100));
  w.timers.set(Timer::Rto, at(300));
  w.timers.validate();
  EXPECT_EQ(w.fired_by(at(101)), 1u);
  EXPECT_FALSE(w.timers.due(Timer::Rto, at(101)));
  w.timers.wait();
  w.timers.clear(Timer::Rto);
  EXPECT_EQ(w.fired_by(at(301)), 1u);
  w.timers.wait();
  EXPECT_EQ(w.wheel.armed(), 0u) << "nothing is left to wait for";
}

TEST(Timers, StoppedOnesDoNotFire) {
  Wheel w;
  w.timers.set(Timer::Reorder, at(10));
  w.timers.stop();
  w.timers.validate();
  EXPECT_EQ(w.timers.at(Timer::Reorder), base::kNever);
  EXPECT_EQ(w.fired_by(at(1000)), 0u);
}

TEST(Timers, TheyLeaveTheWheelWhenTheyEnd) {
  base::TimerWheel wheel{base::Now{}};
  {
    Prediction prediction;
    Timers timers(wheel, nullptr, prediction);
    timers.set(Timer::DelayedAck, at(10));
    EXPECT_EQ(wheel.armed(), 1u);
  }
  EXPECT_EQ(wheel.armed(), 0u);
}

}  // namespace
}  // namespace rnic::tcp

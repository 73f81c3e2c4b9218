// What waits for the peer's window, without anything to send.

#include "tcp/persist.hpp"

#include <gtest/gtest.h>

#include "base/timer_wheel.hpp"

namespace rnic::tcp {
namespace {

using std::chrono::seconds;

struct Waiting {
  static constexpr uint32_t kEmss = 1000;

  ~Waiting() { persist.validate(); }
  /// The timer has fired on a shut window, and the probe went out.
  void probe() {
    now += seconds(1);
    persist.probe(now + seconds(2));
    persist.probe_sent();
  }
  /// The peer says its window.
  void answer(uint32_t window) {
    tcb.snd_wnd = window;
    persist.answered(kEmss);
  }
  [[nodiscard]] bool runs() const { return timers.runs(Timer::Persist); }

  base::Now now = base::Now{} + seconds(1);
  base::TimerWheel wheel{base::Now{}};
  Tcb tcb;
  Prediction prediction;
  Timers timers{wheel, nullptr, prediction};
  Persist persist{tcb, timers};
};

TEST(Persist, WaitsOnceAndDoesNotPutItselfOff) {
  Waiting w;
  EXPECT_TRUE(w.persist.wait(w.now + seconds(1)));
  EXPECT_FALSE(w.persist.wait(w.now + seconds(2)));
  EXPECT_EQ(w.timers.at(Timer::Persist), w.now + seconds(1));
  w.persist.sent();
  EXPECT_FALSE(w.runs());
  EXPECT_TRUE(w.persist.wait(w.now + seconds(2)));
}

TEST(Persist, TheOverrideIsGoodUntilSomethingGoesOut) {
  Waiting w;
  EXPECT_TRUE(w.persist.wait(w.now));
  w.persist.override_silly_window();
  EXPECT_TRUE(w.persist.overrides());
  EXPECT_FALSE(w.runs());
  EXPECT_FALSE(w.persist.probe_due());
  w.persist.sent();
  EXPECT_FALSE(w.persist.overrides());
}

TEST(Persist, AShutWindowIsProbedAgainWhetherOrNotThePeerAnswers) {
  Waiting w;
  EXPECT_TRUE(w.persist.wait(w.now + seconds(1)));
  w.now += seconds(1);
  w.persist.probe(w.now + seconds(2));
  EXPECT_TRUE(w.persist.probe_due());
  EXPECT_EQ(w.persist.backoff(), 1u);
  EXPECT_EQ(w.persist.unanswered(), 0u) << "it has not gone out yet";
  w.persist.probe_sent();
  EXPECT_FALSE(w.persist.probe_due());
  EXPECT_EQ(w.persist.unanswered(), 1u);
  EXPECT_EQ(w.timers.at(Timer::Persist), w.now + seconds(2));
  w.probe();
  EXPECT_EQ(w.persist.unanswered(), 2u);
  w.answer(0);
  EXPECT_EQ(w.persist.unanswered(), 0u);
  EXPECT_EQ(w.persist.backoff(), 2u) << "still shut";
  EXPECT_TRUE(w.runs());
}

TEST(Persist, AnyWindowThatOpensEndsTheProbes) {
  Waiting w;
  w.probe();
  w.answer(1);
  EXPECT_EQ(w.persist.backoff(), 0u);
  EXPECT_EQ(w.persist.unanswered(), 0u);
  EXPECT_FALSE(w.runs()) << "the override's time begins anew";
}

TEST(Persist, TheOverrideIsWaitedForAsLongAsTheWindowIsSmall) {
  Waiting w;
  EXPECT_TRUE(w.persist.wait(w.now + seconds(1)));
  w.answer(Waiting::kEmss - 1);
  EXPECT_TRUE(w.runs());
  w.tcb.snd_nxt = 1;
  w.answer(Waiting::kEmss);
  EXPECT_TRUE(w.runs()) << "one octet of it is used";
  w.tcb.snd_una = 1;
  w.answer(Waiting::kEmss);
  EXPECT_FALSE(w.runs());
}

TEST(Persist, AProbeThatIsNotNeededAnyMoreIsDropped) {
  Waiting w;
  w.persist.probe(w.now + seconds(1));
  w.persist.drop_probe();
  EXPECT_FALSE(w.persist.probe_due());
  EXPECT_EQ(w.persist.unanswered(), 0u);
  // One waited for the port while the window opened.
  w.persist.probe(w.now + seconds(1));
  w.answer(Waiting::kEmss);
  w.persist.probe_sent();
  EXPECT_EQ(w.persist.unanswered(), 1u);
  EXPECT_EQ(w.persist.backoff(), 0u);
  w.persist.validate();
}

TEST(Persist, SixtyFiveThousandProbesAreCountedNoFurther) {
  Waiting w;
  for (uint32_t i = 0; i < 65'540; ++i) w.probe();
  EXPECT_EQ(w.persist.backoff(), 65'535u);
  EXPECT_EQ(w.persist.unanswered(), 65'535u);
}

}  // namespace
}  // namespace rnic::tcp

// The tail loss probe alone: when it is armed, and what an ACK makes of it.

#include "tcp/tail_probe.hpp"

#include <gtest/gtest.h>

#include "base/timer_wheel.hpp"
#include "support/transitions.hpp"

namespace rnic::tcp {
namespace {

using std::chrono::milliseconds;

struct Tail {
  static constexpr uint32_t kSegment = 1000;

  explicit Tail(uint32_t segments) {
    tcb.sack_ok = true;
    rto.sample(milliseconds(20), now);
    for (uint32_t i = 0; i < segments; ++i) {
      Record r;
      r.length = kSegment;
      r.flags = record_flag::kSegmentStart;
      board.push(r);
      tcb.snd_nxt += kSegment;
    }
  }
  ~Tail() { probe.validate(); }
  void arm(RecoveryPhase phase = RecoveryPhase::Open) {
    probe.arm(phase, kSegment, now, now + milliseconds(200));
  }
  /// Sends a probe, which by default repeats the last segment.
  void send(RecoveryPhase phase = RecoveryPhase::Open, bool again = true) {
    probe.fired();
    probe.sent(phase, again, kSegment, now, now + rto.rto(), prediction);
  }
  [[nodiscard]] base::Duration wait() const { return timers.at(Timer::Probe) - now; }
  [[nodiscard]] bool runs() const { return timers.runs(Timer::Probe); }

  base::Now now = base::Now{} + milliseconds(1000);
  base::TimerWheel wheel{base::Now{}};
  Config config;
  RecordPool pool{256, 4, 128};
  RangePool ranges{4};
  Tcb tcb;
  RtoEstimator rto{config};
  Prediction prediction;
  Timers timers{wheel, nullptr, prediction};
  Scoreboard board{tcb, pool, ranges, prediction};
  TailProbe probe{rto, board, timers, config};
};

TEST(TailProbe, IsArmedForTwoRoundTripsAndALoneSegmentForTheDelayOfItsAck) {
  Tail t(2);
  t.arm();
  EXPECT_EQ(t.wait(), milliseconds(40));
  Tail lone(1);
  lone.arm();
  EXPECT_EQ(lone.wait(), milliseconds(40) + lone.config.tlp_max_ack_delay);
  lone.probe.arm_idle(Tail::kSegment, lone.now, lone.now + milliseconds(50));
  EXPECT_EQ(lone.wait(), milliseconds(50)) << "never behind the time-out";
}

TEST(TailProbe, IsNotArmedWhereSomethingElseWatches) {
  Tail t(3);
  t.arm(RecoveryPhase::TimedOut);
  EXPECT_FALSE(t.runs());
  t.arm(RecoveryPhase::Loss);
  EXPECT_FALSE(t.runs());
  t.board.sack({1000, 2000}, [](const Record&, uint64_t) {});
  t.arm();
  EXPECT_FALSE(t.runs()) << "RACK's timer";
  t.arm(RecoveryPhase::Recovery);
  EXPECT_TRUE(t.runs());
  t.probe.recovers();
  t.config.recovery_probe = false;
  t.arm(RecoveryPhase::Recovery);
  EXPECT_FALSE(t.runs()) << "RFC 8985 s.7.2 to the letter";
  t.tcb.sack_ok = false;
  t.arm();
  EXPECT_FALSE(t.runs());
}

TEST(TailProbe, BehindOneTheTimeOutIsNext) {
  Tail t(2);
  t.arm();
  t.probe.fired();
  EXPECT_TRUE(t.probe.due());
  EXPECT_FALSE(t.runs());
  t.send();
  EXPECT_FALSE(t.probe.due());
  EXPECT_TRUE(t.probe.outstanding());
  EXPECT_FALSE(t.probe.idle());
  EXPECT_FALSE(t.runs());
  EXPECT_FALSE(t.timers.runs(Timer::Rto)) << "it is another's";
}

TEST(TailProbe, TellsWhatItHasRepaired) {
  AckResult all;
  all.acked = 2500;
  Tail t(2);
  t.send();
  EXPECT_FALSE(t.probe.acked({}, RecoveryPhase::Open)) << "its end is not reached";
  EXPECT_TRUE(t.probe.outstanding());
  t.tcb.snd_nxt = t.tcb.snd_una = 2500;
  EXPECT_TRUE(t.probe.acked(all, RecoveryPhase::Open)) << "the copy closed a hole";
  EXPECT_FALSE(t.probe.outstanding());
  Tail duplicate(2);
  duplicate.send();
  duplicate.tcb.snd_una = 2000;
  all.dsack = true;
  EXPECT_FALSE(duplicate.probe.acked(all, RecoveryPhase::Open)) << "nothing was lost";
  EXPECT_FALSE(duplicate.probe.outstanding());
}

TEST(ProbeStates, EachPairIsLegalOrNotAsRfc8985Says) {
  // None, Plain, Repeated
  testing::expect_transitions(kProbeTransitions, {".xx", "xxx", "x.."}, "...");
}

TEST(ProbeStates, WhateverHappensLeadsToALegalOneAndEachLegalOneIsReached) {
  struct Happening {
    const char* name;
    void (*happen)(Tail&);
  };
  static constexpr Happening kProbes[] = {
      {"none", [](Tail&) {}},
      {"new data", [](Tail& t) { t.send(RecoveryPhase::Open, false); }},
      {"in a recovery", [](Tail& t) { t.send(RecoveryPhase::Recovery, true); }},
      {"the last segment again", [](Tail& t) { t.send(); }},
  };
  static constexpr Happening kOthers[] = {
      {"an ACK in a recovery",
       [](Tail& t) {
         AckResult some;
         some.acked = 1;
         EXPECT_FALSE(t.probe.acked(some, RecoveryPhase::Recovery));
       }},
      {"an ACK of less", [](Tail& t) { EXPECT_FALSE(t.probe.acked({}, RecoveryPhase::Open)); }},
      {"an ACK of all",
       [](Tail& t) {
         AckResult all;
         all.acked = t.tcb.flight();
         all.dsack = true;
         t.tcb.snd_una = t.tcb.snd_nxt;
         EXPECT_FALSE(t.probe.acked(all, RecoveryPhase::Open));
         t.probe.stop();
       }},
      {"a recovery begins", [](Tail& t) { t.probe.recovers(); }},
      {"a time-out", [](Tail& t) { t.probe.timed_out(); }},
  };
  testing::SeenTransitions seen(kProbeTransitions);
  const auto happens = [&seen](Tail& t, const Happening& event) {
    const ProbeState from = t.probe.state();
    event.happen(t);
    seen.note(from, t.probe.state(), event.name);
  };
  for (const Happening& probe : kProbes) {
    for (const Happening& event : kOthers) {
      Tail t(2);
      happens(t, probe);
      happens(t, event);
    }
    for (const Happening& next : kProbes) {
      Tail t(2);
      happens(t, probe);
      if (t.probe.state() != ProbeState::Repeated) happens(t, next);
    }
  }
  seen.expect_all();
}

TEST(ProbeTurns, EachPairIsLegalOrNotAsRfc8985Says) {
  // Open, Unmeasured, Due, DueAgain
  testing::expect_transitions(kProbeTurnTransitions, {"..x.", "x..x", "xx..", ".xx."}, "....");
}

TEST(ProbeTurns, WhateverHappensLeadsToALegalOneAndEachLegalOneIsReached) {
  struct Happening {
    const char* name;
    void (*happen)(Tail&);
  };
  static constexpr Happening kEvents[] = {
      {"the timer", [](Tail& t) { t.probe.fired(); }},
      {"it is sent",
       [](Tail& t) {
         if (t.probe.due()) t.send(RecoveryPhase::Recovery);
       }},
      {"it is dropped", [](Tail& t) { t.probe.drop(); }},
      {"a time-out", [](Tail& t) { t.probe.timed_out(); }},
      {"a round trip is measured",
       [](Tail& t) {
         AckResult measured;
         measured.acked = 1;
         measured.rtt = milliseconds(20);
         EXPECT_FALSE(t.probe.acked(measured, RecoveryPhase::Recovery));
       }},
  };
  testing::SeenTransitions seen(kProbeTurnTransitions);
  for (int way = 0; way < 5 * 5 * 5 * 5; ++way) {
    Tail t(2);
    for (int rest = way, step = 0; step < 4; ++step, rest /= 5) {
      const ProbeTurn from = t.probe.turn();
      kEvents[rest % 5].happen(t);
      t.probe.validate();
      seen.note(from, t.probe.turn(), kEvents[rest % 5].name);
    }
  }
  seen.expect_all();
}

TEST(ProbeTurns, AProbeThatIsNotDueIsNotSent) {
  Tail t(2);
  EXPECT_DEATH(t.probe.sent(RecoveryPhase::Open, true, Tail::kSegment, t.now, t.now, t.prediction),
               "allows");
}

TEST(ProbeStates, ASecondProbeBehindARepeatedSegmentIsADefect) {
  Tail t(2);
  t.send();
  EXPECT_DEATH(t.send(), "allows");
}

}  // namespace
}  // namespace rnic::tcp

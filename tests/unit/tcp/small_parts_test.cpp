// Small parts, each alone: of a connection the gate of pacing, keep-alive, the handshake, a
// record that is cut; of a stack the limit of challenge ACKs.

#include <gtest/gtest.h>

#include "base/timer_wheel.hpp"
#include "support/damage.hpp"
#include "support/transitions.hpp"
#include "tcp/challenge_acks.hpp"
#include "tcp/handshake.hpp"
#include "tcp/keep_alive.hpp"
#include "tcp/pacing.hpp"
#include "tcp/retransmitter.hpp"

namespace rnic::tcp {
namespace {

using std::chrono::milliseconds;

struct Clocks {
  base::Now now = base::Now{} + milliseconds(1000);
  base::TimerWheel wheel{base::Now{}};
  Prediction prediction;
  Timers timers{wheel, nullptr, prediction};
  Pacing pacing;
  KeepAlive keep_alive;
};

TEST(PacingGate, ClosesBehindWhatLeftAndOpensInTime) {
  using Gate = Pacing::Gate;
  Clocks c;
  EXPECT_FALSE(c.pacing.gated());
  c.pacing.enable(true);
  EXPECT_EQ(c.pacing.ask(c.timers, c.now), Gate::Open);
  c.pacing.sent(1000, 10'000, milliseconds(100), c.now);
  EXPECT_EQ(c.pacing.ask(c.timers, c.now), Gate::Closes);
  EXPECT_EQ(c.pacing.ask(c.timers, c.now), Gate::Closed) << "told of once";
  EXPECT_EQ(c.timers.at(Timer::Pacing), c.now + milliseconds(10));
  c.now += milliseconds(10);
  EXPECT_EQ(c.pacing.ask(c.timers, c.now), Gate::Open);
  EXPECT_FALSE(c.timers.runs(Timer::Pacing));
  EXPECT_TRUE(c.pacing.gated());
}

TEST(PacingGate, AHoldEndsByItselfAndSurvivesTheEndOfPacing) {
  Clocks c;
  c.pacing.enable(true);
  c.pacing.hold(c.now + milliseconds(5));
  c.pacing.enable(false);
  EXPECT_TRUE(c.pacing.gated());
  EXPECT_EQ(c.pacing.ask(c.timers, c.now), Pacing::Gate::Closes);
  EXPECT_EQ(c.pacing.ask(c.timers, c.now + milliseconds(5)), Pacing::Gate::Open);
  EXPECT_FALSE(c.pacing.gated());
}

TEST(PacingModes, EachPairIsLegalOrNot) {
  // Free, Held, Paced
  testing::expect_transitions(kPacingTransitions, {".xx", "x.x", ".x."}, "...");
}

TEST(PacingModes, WhateverHappensLeadsToALegalOneAndEachLegalOneIsReached) {
  struct Event {
    const char* name;
    void (*happen)(Clocks&);
  };
  static constexpr Event kEvents[] = {
      {"nothing", [](Clocks&) {}},
      {"pacing begins", [](Clocks& c) { c.pacing.enable(true); }},
      {"pacing ends", [](Clocks& c) { c.pacing.enable(false); }},
      {"a hold", [](Clocks& c) { c.pacing.hold(c.now + milliseconds(1)); }},
      {"its end",
       [](Clocks& c) {
         c.now += milliseconds(1);
         EXPECT_EQ(c.pacing.ask(c.timers, c.now), Pacing::Gate::Open);
       }},
  };
  testing::SeenTransitions seen(kPacingTransitions);
  for (const Event& first : kEvents) {
    for (const Event& second : kEvents) {
      Clocks c;
      for (const Event& event : {first, second}) {
        const PacingMode from = c.pacing.mode();
        event.happen(c);
        seen.note(from, c.pacing.mode(), event.name);
      }
    }
  }
  seen.expect_all();
}

TEST(KeepAliveClock, AsksWhoIsSilentAndCountsWhatIsNotAnswered) {
  using Verdict = KeepAlive::Verdict;
  Clocks c;
  ConnectionOptions options;
  options.keep_alive = true;
  options.keep_alive_idle = milliseconds(100);
  options.keep_alive_interval = milliseconds(10);
  options.keep_alive_count = 2;
  c.keep_alive.heard(c.now);
  c.keep_alive.arm(options, c.timers, c.now);
  EXPECT_EQ(c.timers.at(Timer::Life), c.now + milliseconds(100));
  c.now += milliseconds(100);
  EXPECT_EQ(c.keep_alive.due(options, c.timers, true, c.now), Verdict::Wait);
  EXPECT_EQ(c.keep_alive.due(options, c.timers, false, c.now), Verdict::Probe);
  EXPECT_TRUE(c.keep_alive.probe_due());
  c.keep_alive.probe_done();
  EXPECT_EQ(c.timers.at(Timer::Life), c.now + milliseconds(10));
  EXPECT_EQ(c.keep_alive.due(options, c.timers, false, c.now), Verdict::Probe);
  EXPECT_EQ(c.keep_alive.due(options, c.timers, false, c.now), Verdict::Dead);
  c.keep_alive.heard(c.now);
  EXPECT_EQ(c.keep_alive.due(options, c.timers, false, c.now), Verdict::Wait);
  options.keep_alive = false;
  c.keep_alive.arm(options, c.timers, c.now);
  EXPECT_FALSE(c.timers.runs(Timer::Life));
}

TEST(KeepAliveClock, TheTimerRunsWhileTheOptionsAskForProbes) {
  Clocks c;
  ConnectionOptions options;
  options.keep_alive = true;
  options.keep_alive_count = 1;
  c.keep_alive.arm(options, c.timers, c.now);
  static_cast<void>(c.keep_alive.due(options, c.timers, false, c.now + options.keep_alive_idle));
  c.keep_alive.validate(options, c.timers);
  options.keep_alive_count = 0;
  EXPECT_DEATH(c.keep_alive.validate(options, c.timers),
               test::report_of("tcp/keep_alive.hpp: probes_ <="));
  options.keep_alive = false;
  EXPECT_DEATH(c.keep_alive.validate(options, c.timers),
               test::report_of("tcp/keep_alive.hpp: runs(Timer::Life)"));
  c.keep_alive.arm(options, c.timers, c.now);
  c.keep_alive.validate(options, c.timers);
}

TEST(Handshake, MeasuresWhatWentOutOnce) {
  Handshake h;
  h.ask();
  EXPECT_TRUE(h.due());
  EXPECT_TRUE(h.sent());
  EXPECT_FALSE(h.due());
  EXPECT_TRUE(h.measures());
  Handshake again = h;
  again.ask();  // the peer's SYN came once more
  EXPECT_FALSE(again.sent());
  EXPECT_FALSE(again.measures());
  EXPECT_FALSE(again.timed_out());
  EXPECT_EQ(h.time_out(), 1u);
  EXPECT_TRUE(h.due());
  EXPECT_FALSE(h.measures());
  EXPECT_EQ(h.tries(), 1u);
  Handshake cookie;
  cookie.assume_sent();
  EXPECT_TRUE(cookie.was_sent());
  EXPECT_TRUE(cookie.timed_out());
  EXPECT_FALSE(cookie.measures());
  EXPECT_EQ(cookie.tries(), 0u);
  for (Handshake each : {h, again, cookie}) {
    each.validate();
    each.done();
    each.validate();
    EXPECT_FALSE(each.due());
    EXPECT_TRUE(each.was_sent());
  }
}

TEST(Handshake, AnAnswerBeforeTheSecondOneLeftMeasures) {
  Handshake h;
  h.ask();
  EXPECT_TRUE(h.sent());
  h.ask();
  h.ask();
  EXPECT_EQ(h.state(), HandshakeState::DueAgain);
  EXPECT_TRUE(h.measures());
  EXPECT_FALSE(h.sent());
  EXPECT_FALSE(h.measures());
}

TEST(HandshakeStates, EachPairIsLegalOrNot) {
  // Idle, Sent, Assumed, Ambiguous, Refused, Done, Due, DueAgain, DueAmbiguous
  testing::expect_transitions(kHandshakeTransitions,
                              {"..x...x..", "....xx.xx", ".....x..x", "....xx..x", ".....x..x",
                               ".........", ".x.......", "...x.x..x", "...xxx..."},
                              ".....x...");
}

TEST(HandshakeStates, WhateverHappensLeadsToALegalOneAndEachLegalOneIsReached) {
  struct Event {
    const char* name;
    void (*happen)(Handshake&);
  };
  static constexpr Event kEvents[] = {
      {"it is asked for", [](Handshake& h) { h.ask(); }},
      {"it is sent",
       [](Handshake& h) {
         if (!h.due()) return;
         const bool first = h.sent();
         EXPECT_EQ(first, h.state() == HandshakeState::Sent);
       }},
      {"its timer",
       [](Handshake& h) {
         if (h.was_sent()) static_cast<void>(h.time_out());
       }},
      {"its answer",
       [](Handshake& h) {
         if (h.was_sent()) h.done();
       }},
      {"a RST",
       [](Handshake& h) {
         // A cookie's SYN-ACK, and a SYN that has crossed another one, are of SYN-RECEIVED.
         const bool passive =
             h.state() == HandshakeState::Assumed || h.state() == HandshakeState::DueAgain;
         if (h.was_sent() && !passive) h.refuse();
       }},
      {"the ACK of a cookie",
       [](Handshake& h) {
         if (h.state() == HandshakeState::Idle) h.assume_sent();
       }},
  };
  testing::SeenTransitions seen(kHandshakeTransitions);
  for (int way = 0; way < 6 * 6 * 6 * 6 * 6; ++way) {
    Handshake h;
    for (int rest = way, step = 0; step < 5 && !h.is_done(); ++step, rest /= 6) {
      const HandshakeState from = h.state();
      kEvents[rest % 6].happen(h);
      h.validate();
      seen.note(from, h.state(), kEvents[rest % 6].name);
    }
  }
  seen.expect_all();
}

TEST(HandshakeStates, WhatIsNotDueIsNotSentAndWhatIsDoneIsOver) {
  Handshake h;
  EXPECT_DEATH(static_cast<void>(h.sent()), "allows");
  EXPECT_DEATH(h.done(), "allows");
  h.assume_sent();
  h.done();
  EXPECT_DEATH(h.ask(), "allows");
}

TEST(ChallengeAcks, SoManyInAnIntervalAndAllAgainInTheNext) {
  Counters counters;
  ChallengeAcks limit(2, milliseconds(10), counters);
  base::Now now = base::Now{} + milliseconds(100);
  for (uint64_t sent = 0; sent <= 4; sent += 2) {
    EXPECT_TRUE(limit.allow(now));
    now += milliseconds(9);
    EXPECT_TRUE(limit.allow(now));
    EXPECT_FALSE(limit.allow(now));
    EXPECT_EQ(counters.challenge_acks, sent + 2);
    EXPECT_EQ(counters.challenge_acks_limited, sent / 2 + 1);
    limit.validate();
    now += milliseconds(1);
  }
  ChallengeAcks none(0, milliseconds(10), counters);
  EXPECT_FALSE(none.allow(now));
}

TEST(CutProgress, ResumesInsideTheRecordAndStartsElsewhereAnew) {
  CutProgress cut;
  EXPECT_EQ(cut.resume({100, 200}), 100u);
  cut.sent_to(150);
  EXPECT_EQ(cut.resume({100, 200}), 150u) << "the port was full";
  EXPECT_EQ(cut.resume({120, 200}), 150u) << "some of what was sent is acknowledged";
  EXPECT_EQ(cut.resume({160, 200}), 160u) << "more than that is";
  EXPECT_EQ(cut.resume({300, 400}), 300u) << "another record";
  cut.forget();
  EXPECT_EQ(cut.resume({100, 200}), 100u);
}

}  // namespace
}  // namespace rnic::tcp

// The two machines of the detector of needless retransmissions: the steps of F-RTO, and whether a
// reduction can be undone. Whatever happens leads to a legal state, and each legal pair happens.

#include "lossy.hpp"
#include "support/transitions.hpp"
#include "tcp/frto_step.hpp"
#include "tcp/undo_state.hpp"

namespace rnic::tcp {
namespace {

struct Event {
  const char* name;
  void (*happen)(Lossy&);
};

TEST(FrtoSteps, EachPairIsLegalOrNotAsRfc5682Says) {
  // Off, AwaitFirst, SendNew, AwaitSecond
  testing::expect_transitions(kFrtoTransitions, {".x..", "x.x.", "x..x", "x..."}, "....");
}

TEST(FrtoSteps, WhateverHappensLeadsToALegalOneAndEachLegalOneIsReached) {
  static constexpr Event kReaching[] = {
      {"nothing", [](Lossy&) {}},
      {"a time-out", [](Lossy& l) { l.time_out(); }},
      {"a new ACK", [](Lossy& l) { l.judge(Lossy::kSegment, true); }},
      {"new data",
       [](Lossy& l) {
         l.detector.frto_sent();
         EXPECT_TRUE(l.detector.frto_sends()) << "one more";
         l.detector.frto_sent();
         EXPECT_FALSE(l.detector.frto_sends());
       }},
  };
  static constexpr Event kOthers[] = {
      {"a new ACK, no new data", [](Lossy& l) { l.judge(Lossy::kSegment, false); }},
      {"an ACK of all", [](Lossy& l) { l.judge(l.tcb.flight(), true); }},
      {"a duplicate ACK", [](Lossy& l) { l.judge(0, true); }},
      {"one more time-out", [](Lossy& l) { l.detector.watch_on(); }},
      {"no new data", [](Lossy& l) { l.detector.frto_over(); }},
      {"the end of the recovery", [](Lossy& l) { l.detector.recovered(); }},
  };
  testing::SeenTransitions seen(kFrtoTransitions);
  for (const Event& event : kOthers) {
    for (size_t steps = 1; steps <= std::size(kReaching); ++steps) {
      Lossy l;
      for (size_t i = 0; i < steps; ++i) {
        const FrtoStep from = l.detector.frto_step();
        kReaching[i].happen(l);
        seen.note(from, l.detector.frto_step(), kReaching[i].name);
      }
      const FrtoStep from = l.detector.frto_step();
      ASSERT_EQ(from, static_cast<FrtoStep>(steps - 1));
      event.happen(l);
      seen.note(from, l.detector.frto_step(), event.name);
    }
  }
  seen.expect_all();
}

TEST(FrtoSteps, ASecondBeginningIsADefect) {
  Lossy l;
  l.time_out();
  EXPECT_DEATH(l.detector.watch(true, l.now), "allows");
}

TEST(UndoStates, EachPairIsLegalOrNotAsRfc4015Says) {
  // Nothing, AwaitEcho, Saved
  testing::expect_transitions(kUndoTransitions, {".xx", "x.x", "xxx"}, "...");
}

TEST(UndoStates, WhateverHappensLeadsToALegalOneAndEachLegalOneIsReached) {
  static constexpr Event kReductions[] = {
      {"nothing", [](Lossy&) {}},
      {"a loss, with timestamps",
       [](Lossy& l) {
         l.tcb.ts_ok = true;
         l.detector.watch(false, l.now);
       }},
      {"a loss",
       [](Lossy& l) {
         l.tcb.ts_ok = false;
         l.detector.watch(false, l.now);
       }},
  };
  static constexpr Event kOthers[] = {
      {"an ACK of the original",
       [](Lossy& l) { l.judge(Lossy::kSegment, false, l.tcb.timestamp(l.now) - 1); }},
      {"an ACK of the retransmission",
       [](Lossy& l) { l.judge(Lossy::kSegment, false, l.tcb.timestamp(l.now)); }},
      {"an ACK without a timestamp", [](Lossy& l) { l.judge(Lossy::kSegment, false); }},
      {"a duplicate ACK", [](Lossy& l) { l.judge(0, false, l.tcb.timestamp(l.now) - 1); }},
      {"a time-out within it", [](Lossy& l) { l.detector.watch_on(); }},
      {"D-SACKs of all that was sent again",
       [](Lossy& l) {
         l.detector.retransmitted(Lossy::kSegment);
         if (l.detector.dsack(Lossy::kSegment)) l.detector.undone(false, l.prediction);
       }},
      {"the end of the recovery", [](Lossy& l) { l.detector.recovered(); }},
  };
  testing::SeenTransitions seen(kUndoTransitions);
  const auto happens = [&seen](Lossy& l, const Event& event) {
    const UndoState from = l.detector.undo_state();
    event.happen(l);
    seen.note(from, l.detector.undo_state(), event.name);
  };
  for (const Event& reduction : kReductions) {
    for (const Event& event : kOthers) {
      for (const Event& next : kReductions) {
        Lossy l;
        happens(l, reduction);
        happens(l, event);
        if (l.detector.undo_state() == UndoState::AwaitEcho) continue;  // no recovery ends so
        happens(l, next);
      }
    }
  }
  seen.expect_all();
}

TEST(UndoStates, ASecondReductionBeforeAnyNewAckIsADefect) {
  Lossy l;
  l.tcb.ts_ok = true;
  l.detector.watch(false, l.now);
  EXPECT_DEATH(l.detector.watch(false, l.now), "allows");
}

}  // namespace
}  // namespace rnic::tcp

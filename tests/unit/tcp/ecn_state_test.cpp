// What ECN remembers, without a stack around it.

#include "tcp/ecn_state.hpp"

#include <gtest/gtest.h>

#include <array>
#include <functional>
#include <utility>
#include <vector>

#include "support/transitions.hpp"

namespace rnic::tcp {
namespace {

struct Agreed {
  Agreed() { ecn.take_syn(true, false, true); }
  ~Agreed() { ecn.validate(); }
  Prediction prediction;
  EcnState ecn;
};

TEST(EcnState, IsOnWhereOneSideAsksAndTheOtherAgrees) {
  EcnState silent;
  silent.take_syn(true, true, true);
  EXPECT_FALSE(silent.on()) << "an answer to what was not asked";
  EcnState asking;
  asking.offer();
  asking.offer();
  asking.take_syn(true, true, false);
  EXPECT_TRUE(asking.on());
  asking.take_syn(true, true, false);
  EXPECT_TRUE(asking.sends_ect());
  asking.take_syn(false, true, true);
  EXPECT_FALSE(asking.on()) << "the SYN came again, and does not ask";
  EcnState tired;
  tired.offer();
  EXPECT_TRUE(tired.fall_back());
  EXPECT_FALSE(tired.fall_back()) << "known";
  tired.take_syn(true, true, true);
  EXPECT_TRUE(tired.on()) << "the answer to the SYN that asked";
  EXPECT_FALSE(tired.sends_ect());
  Agreed late;
  EXPECT_TRUE(late.ecn.sends_ect());
  late.ecn.take_late_syn(false);
  EXPECT_TRUE(late.ecn.on());
  EXPECT_FALSE(late.ecn.sends_ect());
}

TEST(EcnAgreements, EachPairIsLegalOrNot) {
  // None, Offered, Withdrawn, Declined, Agreed, EchoOnly
  testing::expect_transitions(
      kEcnTransitions, {".x.xx.", "..xxx.", "...x.x", "......", "...x.x", "...x.."}, "...x..");
}

TEST(EcnAgreements, WhateverHappensLeadsToALegalOneAndEachLegalOneIsReached) {
  const std::array<std::pair<const char*, std::function<void(EcnState&)>>, 6> events{{
      {"our SYN asks",
       [](EcnState& e) {
         if (e.agreement() <= EcnAgreement::Offered) e.offer();
       }},
      {"our SYN does not ask",
       [](EcnState& e) {
         if (!e.on()) e.fall_back();
       }},
      {"the answer agrees", [](EcnState& e) { e.take_syn(true, true, true); }},
      {"the answer does not", [](EcnState& e) { e.take_syn(false, true, true); }},
      {"the peer asks", [](EcnState& e) { e.take_syn(true, false, true); }},
      {"a late SYN does not", [](EcnState& e) { e.take_late_syn(false); }},
  }};
  testing::SeenTransitions seen(kEcnTransitions);
  std::vector<EcnState> reached(1);
  for (size_t i = 0; i < reached.size() && i < 1000; ++i) {
    for (const auto& [name, event] : events) {
      EcnState e = reached[i];
      event(e);
      e.validate();
      seen.note(reached[i].agreement(), e.agreement(), name);
      if (e.agreement() != reached[i].agreement()) reached.push_back(e);
    }
  }
  seen.expect_all();
}

TEST(CwrStates, EachPairIsLegalOrNot) {
  // None, Owed, Said
  testing::expect_transitions(kCwrTransitions, {".xx", "x.x", "xx."}, "...");
}

TEST(CwrStates, WhateverHappensLeadsToALegalOneAndEachLegalOneIsReached) {
  testing::SeenTransitions seen(kCwrTransitions);
  const auto step = [&seen](EcnState& e, const char* name, const auto& event) {
    const CwrState before = e.cwr();
    event(e);
    e.validate();
    seen.note(before, e.cwr(), name);
  };
  const auto reduce = [](EcnState& e) { e.note_reduction(1); };
  const auto undo = [](EcnState& e) { e.undo(); };
  const auto send = [](EcnState& e) { static_cast<void>(e.take_cwr()); };
  EcnState e;
  e.take_syn(true, false, true);
  step(e, "reduced", reduce);
  step(e, "undone", undo);
  step(e, "reduced", reduce);
  step(e, "sent", send);
  step(e, "reduced", reduce);
  step(e, "sent", send);
  step(e, "undone", undo);
  e.take_late_syn(false);
  step(e, "reduced without ECT", reduce);
  step(e, "a mark of before", [](EcnState& s) { s.commit_cwr(); });
  seen.expect_all();
}

TEST(EcnState, AMarkIsEchoedUntilCwrComes) {
  Agreed a;
  EXPECT_TRUE(a.ecn.arrived(true, false, a.prediction)) << "told at once";
  EXPECT_FALSE(a.ecn.arrived(true, false, a.prediction));
  EXPECT_FALSE(a.ecn.arrived(false, false, a.prediction));
  EXPECT_TRUE(a.ecn.echoes());
  EXPECT_TRUE(a.ecn.arrived(false, true, a.prediction));
  EXPECT_FALSE(a.ecn.echoes());
  EXPECT_TRUE(a.ecn.arrived(true, true, a.prediction));
  EXPECT_TRUE(a.ecn.echoes()) << "CWR first, then CE";
}

TEST(EcnState, UnderDctcpWhatCameBeforeAChangeIsReportedAsItWasMarked) {
  using Change = EcnState::Change;
  Agreed a;
  EXPECT_EQ(a.ecn.arrived_dctcp(false, true, base::Seq32(1), a.prediction), Change::None);
  EXPECT_EQ(a.ecn.arrived_dctcp(true, false, base::Seq32(1), a.prediction), Change::Changed);
  EXPECT_FALSE(a.ecn.owes_acks()) << "nothing waits";
  EXPECT_EQ(a.ecn.arrived_dctcp(false, true, base::Seq32(2), a.prediction), Change::Changed);
  EXPECT_EQ(a.ecn.arrived_dctcp(true, true, base::Seq32(3), a.prediction), Change::Changed);
  const EcnState::Owed first = a.ecn.take_owed();
  EXPECT_EQ(first.ack, base::Seq32(2));
  EXPECT_TRUE(first.ece);
  const EcnState::Owed second = a.ecn.take_owed();
  EXPECT_EQ(second.ack, base::Seq32(3));
  EXPECT_FALSE(second.ece);
  for (uint32_t i = 0; i < 4; ++i) {
    EXPECT_EQ(a.ecn.arrived_dctcp(i % 2 != 0, true, base::Seq32(i), a.prediction), Change::Changed);
  }
  EXPECT_EQ(a.ecn.arrived_dctcp(false, true, base::Seq32(9), a.prediction), Change::Merged);
}

TEST(EcnState, MarksOfOneWindowAreAnsweredOnce) {
  Agreed a;
  EXPECT_FALSE(a.ecn.answered(0));
  a.ecn.note_reduction(1000);
  EXPECT_TRUE(a.ecn.take_cwr());
  EXPECT_FALSE(a.ecn.take_cwr());
  EXPECT_TRUE(a.ecn.answered(1000));
  EXPECT_FALSE(a.ecn.reduced_beyond(1000));
  EXPECT_TRUE(a.ecn.reduced_beyond(999));
  EXPECT_FALSE(a.ecn.answered(1001));
  a.ecn.undo();
  EXPECT_FALSE(a.ecn.answered(1000));
}

TEST(EcnState, HoldsAreCountedUpToSix) {
  Agreed a;
  for (uint32_t i = 0; i < 10; ++i) EXPECT_EQ(a.ecn.hold(), std::min(i, 6u));
  a.ecn.end_holds();
  EXPECT_EQ(a.ecn.hold(), 0u);
}

}  // namespace
}  // namespace rnic::tcp

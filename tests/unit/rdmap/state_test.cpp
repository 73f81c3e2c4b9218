// Every operation in every state.

#include "two_nodes.hpp"

namespace rnic::rdmap {
namespace {

using State = EndpointState;
constexpr std::array kStates{State::Idle,       State::Connected,   State::Closing,
                             State::HalfClosed, State::Terminating, State::Error,
                             State::Closed};

class StateTest : public TwoNodes {
 protected:
  /// a in this state, with nothing outstanding and its records cleared.
  void enter(State state) {
    restart();
    switch (state) {
      case State::Idle:
        a = std::make_unique<Node>(EndpointConfig{.qp = 9, .pd = 4}, 1);
        pair.a.attach(a->endpoint.framing_user());
        break;
      case State::Connected: break;
      case State::Closing:
        read(90, 0, 8, 0);  // keeps it from closing
        a->endpoint.disconnect();
        break;
      case State::HalfClosed: a->endpoint.disconnect(); break;
      case State::Terminating: pair.a.user().framing_error(llp::FramingError::Crc, {}); break;
      case State::Error: a->endpoint.abort(); break;
      case State::Closed:
        a->endpoint.disconnect();
        pair.a.user().ended(StreamEnd::Closed, {});
        break;
    }
    EXPECT_EQ(a->endpoint.state(), state);
    a->owner.sends.clear();
    a->owner.receives.clear();
    a->owner.events.clear();
  }
  [[nodiscard]] static bool running(State s) {
    return s == State::Connected || s == State::Closing || s == State::HalfClosed;
  }
};

// DDP-6.2.1-01 RDMAP-6.2-01: work is carried out when connected, refused in its turn when
// closing, and flushed at once otherwise.
TEST_F(StateTest, PostingWork_BUG_06) {
  for (const State state : kStates) {
    for (const Opcode opcode :
         {Opcode::Send, Opcode::SendInvalidate, Opcode::Write, Opcode::Read, Opcode::ReadInvalidate,
          Opcode::FetchAdd, Opcode::CompareSwap, Opcode::Immediate, Opcode::LocalInvalidate}) {
      enter(state);
      SendRequest w = a->work(5, opcode, 0, 0);
      if (opcode == Opcode::ReadInvalidate) w = a->work(5, opcode, 0, 8);
      w.remote.stag = b->all;
      w.invalidate_stag = opcode == Opcode::LocalInvalidate ? a->add({}) : b->all;
      a->send(w);
      SCOPED_TRACE(std::string(to_string(state)) + ", " + to_string(opcode));
      if (state == State::Connected) {
        EXPECT_TRUE(a->owner.sends.empty());
        pair.a.pull_all();
        EXPECT_EQ(pair.a.sent.size(), opcode == Opcode::LocalInvalidate ? 0u : 1u);
        continue;
      }
      if (state == State::Closing) {
        EXPECT_TRUE(a->owner.sends.empty()) << "behind what was posted before";
        pair.pump();
        ASSERT_EQ(a->owner.send_ids(), (std::vector<uint64_t>{90, 5}));
        EXPECT_EQ(a->owner.sends[0].status, CompletionStatus::Success);
      }
      EXPECT_EQ(a->owner.sends.back().id, 5u);
      EXPECT_EQ(a->owner.sends.back().status, CompletionStatus::Flushed);
      for (const auto& sent : pair.a.sent) EXPECT_EQ(sent.octets[1], 0x41) << "only the Read";
    }
  }
}

TEST_F(StateTest, PostingReceives_BUG_06) {
  for (const State state : kStates) {
    enter(state);
    a->post_receive(5, 0, 8);
    const bool kept = running(state) || state == State::Idle;
    EXPECT_EQ(a->owner.receives.size(), kept ? 0u : 1u) << to_string(state);
    if (!kept) {
      EXPECT_EQ(a->owner.receives[0].status, CompletionStatus::Flushed);
    }
  }
}

// Messages are taken while the stream runs; a half-closed one still
// receives.
TEST_F(StateTest, MessagesThatArrive_DDP_3_08) {
  for (const State state : kStates) {
    if (state == State::Idle) continue;
    enter(state);
    a->post_receive(5, 0, 8);
    a->owner.receives.clear();
    pair.a.discarding = false;  // as if the layer below had gone on
    b->fill(0, 8, 9);
    b->send(b->work(1, Opcode::Send, 0, 8));
    SendRequest w = b->work(2, Opcode::Write, 0, 8);
    w.remote = {a->all, 100};
    b->send(w);
    pair.b.pull_all();
    const auto before = a->memory;
    pair.a.arrive_rest(pair.b);
    EXPECT_EQ(a->owner.receives.size(), running(state) ? 1u : 0u) << to_string(state);
    EXPECT_EQ(a->memory == before, !running(state)) << "nothing is placed in an error state";
    EXPECT_TRUE(a->owner.events.empty());
  }
}

// RDMAP-7.1-05 RDMAP-5.4-03: an error gives one Terminate while the stream runs,
// and nothing in any other state.
TEST_F(StateTest, ErrorsOfTheFraming_RDMAP_6_2_1_01) {
  for (const State state : kStates) {
    enter(state);
    pair.a.sent.clear();
    pair.a.user().framing_error(llp::FramingError::MarkerMismatch, {});
    // DDP-6.2.1-02: behind our FIN no Terminate can leave; the stream is ended instead.
    const bool told = running(state) && state != State::HalfClosed;
    EXPECT_EQ(a->owner.events.size(), told ? 1u : 0u) << to_string(state);
    EXPECT_EQ(pair.a.aborted, state == State::HalfClosed || state == State::Error);
    pair.a.pull_all();
    EXPECT_EQ(pair.a.sent.size(), told || state == State::Terminating ? 1u : 0u);
  }
}

// A Terminate arrives: while the stream runs it is told once, flushes and closes; in
// every other state it changes nothing. It is answered in none.
TEST_F(StateTest, ATerminateArrives_UNH_RDMAP_09) {
  for (const State state : kStates) {
    if (state == State::Idle) continue;
    enter(state);
    pair.a.pull_all();  // in Terminating: its own Terminate
    const size_t sent = pair.a.sent.size();
    a->post_receive(5, 0, 8);
    pair.a.discarding = false;  // as if the layer below had gone on
    b->endpoint.framing_user().framing_error(llp::FramingError::Crc, {});
    pair.b.pull_all();
    ASSERT_EQ(pair.b.sent.size(), 1u);
    pair.a.arrive_rest(pair.b);
    EXPECT_EQ(a->owner.events.size(), running(state) ? 1u : 0u) << to_string(state);
    if (running(state)) {
      EXPECT_TRUE(std::holds_alternative<event::TerminateReceived>(a->owner.events.at(0)));
      EXPECT_EQ(a->endpoint.state(), State::Error);
      EXPECT_TRUE(a->endpoint.idle());
      EXPECT_EQ(pair.a.close_calls, state == State::HalfClosed ? 2u : 1u);
    }
    pair.a.pull_all();
    EXPECT_EQ(pair.a.sent.size(), sent);
  }
}

TEST_F(StateTest, ThePeerCloses_DDP_6_2_1_03) {
  for (const State state : kStates) {
    for (const bool clean : {true, false}) {
      enter(state);
      pair.a.user().peer_finished(clean, {});
      State expected = state;
      if (running(state) && !clean) expected = State::Error;
      EXPECT_EQ(a->endpoint.state(), expected) << to_string(state) << clean;
      EXPECT_EQ(a->owner.events.size(), running(state) && clean ? 1u : 0u);
    }
  }
  // With a Read under way no Response can come any more.
  enter(State::Closing);
  pair.a.pull_all();
  pair.a.user().peer_finished(true, {});
  EXPECT_EQ(a->endpoint.state(), State::Error);
  EXPECT_EQ(a->owner.sends.at(0).status, CompletionStatus::Flushed);
}

// RDMAP-6.2-01: the end of the stream is told once, with how it ended, and leaves nothing
// outstanding.
TEST_F(StateTest, TheStreamEnds_DDP_6_2_2_02) {
  for (const State state : kStates) {
    for (const auto how : {StreamEnd::Closed, StreamEnd::Aborted, StreamEnd::TimedOut}) {
      if (state == State::Closed) continue;  // it has ended
      enter(state);
      a->post_receive(6, 0, 8);
      pair.a.user().ended(how, {});
      EXPECT_TRUE(a->endpoint.idle());
      ASSERT_EQ(a->owner.events.size(), 1u) << to_string(state);
      EXPECT_TRUE(std::holds_alternative<event::Disconnected>(a->owner.events[0]));
      EXPECT_EQ(a->owner.disconnected(0).end, how);
      const bool orderly = how == StreamEnd::Closed && (running(state) || state == State::Idle);
      EXPECT_EQ(a->endpoint.state(), orderly ? State::Closed : State::Error) << to_string(state);
    }
  }
}

TEST_F(StateTest, DisconnectAndAbort_DDP_6_2_1_01) {
  for (const State state : kStates) {
    enter(state);
    a->endpoint.disconnect();
    a->endpoint.disconnect();
    State expected = state;
    if (state == State::Idle) expected = State::Closed;
    if (state == State::Connected) expected = State::HalfClosed;  // there is nothing to wait for
    EXPECT_EQ(a->endpoint.state(), expected);
    enter(state);
    a->endpoint.abort();
    a->endpoint.abort();
    EXPECT_EQ(a->endpoint.state(), state == State::Closed ? State::Closed : State::Error);
    EXPECT_TRUE(a->endpoint.idle());
    EXPECT_FALSE(pair.a.pull());
  }
}

// A message behind the peer's FIN ends the stream at once; its data goes nowhere.
TEST_F(StateTest, DataBehindThePeersFin_DDP_6_2_1_02) {
  for (const State state : {State::Connected, State::Closing, State::HalfClosed}) {
    enter(state);
    a->post_receive(5, 0, 8);
    pair.a.user().peer_finished(true, {});
    a->owner.events.clear();
    const auto before = a->memory;
    b->send(b->work(1, Opcode::Send, 0, 8));
    pair.b.pull_all();
    pair.a.arrive_rest(pair.b);
    EXPECT_TRUE(pair.a.aborted);
    EXPECT_EQ(a->endpoint.state(), State::Error);
    EXPECT_EQ(a->memory, before);
    EXPECT_EQ(a->owner.receives.at(0).status, CompletionStatus::Flushed);
    EXPECT_EQ(a->counters.faults, 1u);
  }
}

}  // namespace
}  // namespace rnic::rdmap

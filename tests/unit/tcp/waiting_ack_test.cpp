// An ACK of pushed text that waits for the user's answer, and when it does not (RFC 9293
// s.3.8.6.3, RFC 5681 s.4.2).

#include "raw_peer.hpp"

namespace rnic::testing {
namespace {

constexpr uint32_t kMessage = 64;

/// A stack whose latest ACK rode on an answer of its user. The turns are the test's own.
struct Conversation : RawPeer {
  explicit Conversation(const tcp::Config& config = bare(),
                        const std::vector<uint8_t>& options = option_mss(1460))
      : RawPeer(config) {
    accept(options);
    hold_output = true;
    user.tells_last = true;
    answer();
  }
  /// The peer pushes a message. \param more what its segment has beside
  void ask(Segment more = {}) {
    more.seq = kIrs + 1 + heard;
    more.ack = kIss + 1 + said;
    more.flags |= kPshAck;
    more.payload = more.payload != 0 ? more.payload : kMessage;
    heard += more.payload;
    inject(more);
  }
  void turn() { stack.output(now); }
  /// The user answers, which carries whatever ACK is owed.
  void answer() {
    user.queue(kMessage);
    turn();
    expect({.flags = kPshAck, .ack = kIrs + 1 + heard, .payload = kMessage});
    said += kMessage;
    EXPECT_TRUE(silent());
  }
  void expect_ack() {
    expect({.ack = kIrs + 1 + heard});
    EXPECT_TRUE(silent());
  }

  uint32_t heard = 0;
  uint32_t said = 0;
};

/// Another connection of that stack, whose latest ACK rode on an answer, too.
struct Another {
  static constexpr uint16_t kPort = RawPeer::kPeerPort + 1;

  explicit Another(Conversation& with) : c(with) {
    user.tells_last = true;
    c.acceptor.next.push_back(&user);
    c.inject({.seq = kIrs, .flags = flag::kSyn, .options = option_mss(1460), .source_port = kPort});
    c.turn();
    c.expect({.flags = kSynAck, .ack = kIrs + 1, .options = kAny});
    c.inject({.seq = kIrs + 1, .ack = kIss + 1, .flags = flag::kAck, .source_port = kPort});
    user.queue(kMessage);
    c.turn();
    c.expect({.flags = kPshAck, .ack = kIrs + 1, .payload = kMessage});
  }
  void ask() {
    c.inject({.seq = kIrs + 1,
              .ack = kIss + 1 + kMessage,
              .flags = kPshAck,
              .payload = kMessage,
              .source_port = kPort});
  }

  Conversation& c;
  RecordUser user{11, 22};
};

TEST(WaitingAck, SeveralWaitTogether) {
  Conversation c;
  Another other(c);
  c.ask();
  other.ask();
  c.turn();
  EXPECT_TRUE(c.silent());
  c.stack.validate();
  c.turn();
  c.expect({.ack = kIrs + 1 + kMessage});
  c.expect({.ack = kIrs + 1 + kMessage});
  EXPECT_TRUE(c.silent());
}

TEST(WaitingAck, OneThatBeginsToWaitKeepsNoneThatHasWaited) {
  Conversation c;
  Another other(c);
  c.ask();
  c.turn();
  EXPECT_TRUE(c.silent());
  other.ask();
  c.turn();
  c.expect_ack();
  c.turn();
  c.expect_ack();
}

// What is noted of an answer comes behind it, unless others are to be sent with it.
TEST(WaitingAck, TheAnswerIsHandedOverAtOnce) {
  Conversation c;
  Another other(c);
  c.ask();
  c.turn();
  c.egress.handed_over.clear();
  c.answer();
  EXPECT_EQ(c.egress.handed_over, (std::vector<size_t>{1}));
  c.ask();
  other.ask();
  c.turn();
  c.egress.handed_over.clear();
  c.user.queue(kMessage);
  other.user.queue(kMessage);
  c.turn();
  EXPECT_EQ(c.egress.sent.size(), 2u);
  EXPECT_EQ(c.egress.handed_over, (std::vector<size_t>{2})) << "behind the last one";
}

TEST(WaitingAck, RidesOnTheAnswerOfTheNextTurn) {
  Conversation c;
  for (int i = 0; i < 3; ++i) {
    c.ask();
    c.turn();
    EXPECT_TRUE(c.silent());
    EXPECT_EQ(c.stack.next_deadline(), base::Now{}) << "the next turn is due at once";
    c.stack.validate();
    c.answer();
    EXPECT_GT(c.stack.next_deadline(), c.now);
  }
  EXPECT_EQ(c.stack.counters().acks_out, 0u);
}

TEST(WaitingAck, GoesAloneInTheNextTurnWithoutAnAnswer_TCP_9293_3_8_6_3_01) {
  Conversation c;
  c.ask();
  c.turn();
  EXPECT_TRUE(c.silent());
  c.turn();
  c.expect_ack();
  c.turn();
  EXPECT_TRUE(c.silent());
}

// Whoever does not answer has its segments acknowledged at once, as if nobody ever waited.
TEST(WaitingAck, WaitsOnlyAfterOneThatRode) {
  Conversation c;
  c.ask();
  c.turn();
  c.turn();
  c.expect_ack();
  for (int i = 0; i < 3; ++i) {
    c.ask();
    c.turn();
    c.expect_ack();
  }
  c.answer();
  c.ask();
  c.turn();
  EXPECT_TRUE(c.silent());
}

TEST(WaitingAck, WaitsForOneTurnWhateverElseArrives) {
  Conversation c;
  c.ask();
  c.turn();
  c.ask();
  c.turn();
  c.expect_ack();
}

// RFC 9293 s.3.8.6.3, RFC 5681 s.4.2: at least every second full segment.
TEST(WaitingAck, TwoFullSegmentsDoNotWait_TCP_9293_3_8_6_3_01) {
  Conversation c;
  c.ask({.payload = 1460});
  c.ask({.payload = 1460});
  c.turn();
  c.expect_ack();
}

/// A message is lost, the next one is acknowledged at once, and so is the one that fills the hole.
void lose_and_fill(Conversation& c) {
  c.heard += kMessage;
  c.ask();
  c.turn();
  c.expect({.ack = kIrs + 1});
  c.heard = 0;
  c.ask();
  c.heard += kMessage;
  c.turn();
  c.expect_ack();
}

// RFC 5681 s.4.2: text behind a hole, and text that fills it, is acknowledged at once.
TEST(WaitingAck, AHoleDoesNotWait) {
  Conversation c;
  lose_and_fill(c);
}

TEST(WaitingAck, ADuplicateDoesNotWait) {
  Conversation c;
  c.ask();
  c.answer();
  c.heard = 0;
  c.ask();
  c.turn();
  c.expect_ack();
}

// The ACK of a FIN is what the peer's close waits for.
TEST(WaitingAck, AFinDoesNotWait) {
  Conversation c;
  c.ask({.flags = flag::kFin});
  c.turn();
  c.expect({.ack = kIrs + 1 + kMessage + 1});
}

// Nothing can follow our FIN.
TEST(WaitingAck, WhoHasClosedDoesNotWait) {
  Conversation c;
  c.user.stream->close();
  c.turn();
  c.expect({.flags = kFinAck});
  c.ask();
  c.turn();
  c.expect_ack();
}

// RFC 3168 s.6.1.3: the mark is what the peer has to hear of.
TEST(WaitingAck, AMarkDoesNotWait) {
  tcp::Config config = RawPeer::bare();
  config.ecn = Ecn::Accept;
  RawPeer p(config);
  p.acceptor.next.push_back(&p.user);
  p.inject({.seq = kIrs, .flags = flag::kSyn | kBoth, .options = option_mss(1460)});
  p.expect({.flags = kSynAck | flag::kEce, .options = kAny});
  p.inject({.seq = kIrs + 1, .ack = kIss + 1, .flags = flag::kAck});
  p.send_record(kMessage);
  p.expect({.flags = kPshAck, .payload = kMessage, .ecn = kEct0});
  p.inject({.seq = kIrs + 1,
            .ack = kIss + 1 + kMessage,
            .flags = kPshAck,
            .payload = kMessage,
            .ecn = kCe});
  p.expect({.flags = flag::kAck | flag::kEce, .ack = kIrs + 1 + kMessage});
}

// The probe asks the peer whether it lives, and goes out in the turn in which it is due.
TEST(WaitingAck, AKeepAliveProbeDoesNotWait) {
  tcp::Config config = RawPeer::bare();
  config.keep_alive = true;
  config.keep_alive_idle = seconds(1);
  Conversation c(config);
  c.inject({.seq = kIrs + 1, .ack = kIss + 1 + c.said, .flags = flag::kAck});
  c.now += seconds(1);
  c.stack.on_timers(c.now);
  c.ask();
  c.turn();
  c.expect({.seq = kIss + 1 + c.said - 1, .ack = kIrs + 1 + c.heard});
  EXPECT_EQ(c.stack.counters().keep_alive_probes, 1u);
}

// While the path loses segments, each ACK counts.
TEST(WaitingAck, BehindARecentHoleItDoesNotWait) {
  Conversation c;
  lose_and_fill(c);
  c.answer();
  c.ask();
  c.turn();
  c.expect_ack();
}

// A late turn is paid for with a hundred times as long in which none was late: behind it, and up to
// two seconds before it.
TEST(WaitingAck, LateTurnsAreNotRisked) {
  Conversation c;
  c.now += seconds(10);
  c.ask();
  c.turn();
  c.now += milliseconds(10);
  c.answer();
  c.ask();
  c.turn();
  EXPECT_TRUE(c.silent()) << "that one was paid for before";
  c.now += microseconds(100);
  c.answer();
  c.ask();
  c.turn();
  EXPECT_TRUE(c.silent()) << "that was not late";
  c.now += microseconds(10'200);
  c.answer();
  c.ask();
  c.turn();
  c.expect_ack();
  c.answer();
  // Both took 20.2 ms of the latest 2.0103 s, up to this turn.
  c.now += 100 * microseconds(20'200) - microseconds(2'010'300) - base::Duration(1);
  c.ask();
  c.turn();
  c.expect_ack();
  c.answer();
  c.now += base::Duration(1);
  c.ask();
  c.turn();
  EXPECT_TRUE(c.silent());
}

// One connection's wait does not keep another one from its turn, and an end takes it away.
TEST(WaitingAck, MayEndMeanwhile) {
  Conversation c;
  c.ask();
  c.turn();
  c.user.stream->abort();
  c.turn();
  // The peer takes no ACK from a RST.
  c.expect({.flags = flag::kAck});
  c.expect({.flags = flag::kRst | flag::kAck});
  c.turn();
  EXPECT_TRUE(c.silent());
  EXPECT_TRUE(c.stack.quiescent());
}

}  // namespace
}  // namespace rnic::testing

// RFC 3168 at both ends of a connection, segment by segment.
#include "raw_peer.hpp"
#include "unit/tcp/inside.hpp"

namespace rnic::testing {
namespace {

tcp::Config with_ecn(Ecn mode) {
  tcp::Config c = RawPeer::bare();
  c.ecn = mode;
  c.congestion_control = CongestionControl::NewReno;
  return c;
}

struct EcnPeer : RawPeer {
  using RawPeer::RawPeer;

  /// Passive open; our SYN carries `bits`. \return the SYN-ACK.
  Segment open_passive(uint8_t bits) {
    acceptor.next.push_back(&user);
    inject({.seq = kIrs,
            .flags = static_cast<uint8_t>(flag::kSyn | bits),
            .options = option_mss(kMss)});
    const Segment syn_ack = next();
    inject({.seq = kIrs + 1, .ack = kIss + 1, .flags = flag::kAck});
    EXPECT_TRUE(user.is_established);
    return syn_ack;
  }
  /// Our SYN-ACK with `bits` answers the stack's SYN; takes the ACK away.
  void answer_syn(uint8_t bits) {
    inject({.seq = kIrs,
            .ack = kIss + 1,
            .flags = static_cast<uint8_t>(flag::kSyn | flag::kAck | bits),
            .options = option_mss(kMss)});
    EXPECT_TRUE(user.is_established);
    expect({.ack = kIrs + 1});
  }
  /// The stack sends one full segment.
  Segment send_one() {
    user.queue(kMss);
    stack.output(now);
    const Segment s = next();
    sent_to += kMss;
    return s;
  }
  void ack(uint32_t offset, uint8_t bits = 0) {
    inject({.seq = kIrs + 1 + received,
            .ack = kIss + 1 + offset,
            .flags = static_cast<uint8_t>(flag::kAck | bits)});
  }
  /// `length` octets of ours, in order.
  void give(uint32_t length, uint8_t ecn, uint8_t bits = 0) {
    inject({.seq = kIrs + 1 + received,
            .ack = kIss + 1,
            .flags = static_cast<uint8_t>(flag::kAck | flag::kPsh | bits),
            .payload = length,
            .ecn = ecn});
    received += length;
  }
  [[nodiscard]] tcp::Inside connection() { return tcp::Inside(*user.stream); }
  [[nodiscard]] uint32_t cwnd() { return connection().cc.cwnd(); }
  /// Sends `segments`; what cwnd lets out at once is taken away.
  void send(uint32_t segments) {
    for (uint32_t i = 0; i < segments; ++i) user.queue(kMss);
    stack.output(now);
  }

  uint32_t received = 0;
  uint32_t sent_to = 0;
};

struct SynBits {
  Ecn mode;
  uint8_t bits;
};

class PassiveNegotiation : public ::testing::TestWithParam<SynBits> {};

// TCP-3168-6.1.1-01: both flags on the SYN, and we are willing; nothing else will do.
TEST_P(PassiveNegotiation, OnlyEceWithCwrAsks_BUG_11) {
  EcnPeer p(with_ecn(GetParam().mode));
  const Segment syn_ack = p.open_passive(GetParam().bits);
  const bool agreed = GetParam().mode != Ecn::Off && GetParam().bits == kBoth;
  const uint8_t ece = agreed ? flag::kEce : 0;
  // Never ECT on a SYN-ACK.
  compare(syn_ack, {.flags = flag::kSyn | flag::kAck | ece});
  EXPECT_EQ(p.send_one().ecn, agreed ? kEct0 : 0);
  EXPECT_EQ(p.stack.counters().ecn_connections, agreed ? 1u : 0u);
  p.give(100, kCe);
  p.stack.output(p.now);  // where no mark is told, the ACK waits for an answer
  p.expect({.flags = flag::kAck | ece});
}
INSTANTIATE_TEST_SUITE_P(
    Ecn, PassiveNegotiation,
    ::testing::Values(SynBits{Ecn::Accept, 0}, SynBits{Ecn::Accept, flag::kEce},
                      SynBits{Ecn::Accept, flag::kCwr}, SynBits{Ecn::Accept, kBoth},
                      SynBits{Ecn::Offer, 0}, SynBits{Ecn::Offer, flag::kEce},
                      SynBits{Ecn::Offer, flag::kCwr}, SynBits{Ecn::Offer, kBoth},
                      SynBits{Ecn::Off, 0}, SynBits{Ecn::Off, flag::kEce},
                      SynBits{Ecn::Off, flag::kCwr}, SynBits{Ecn::Off, kBoth}));

class ActiveNegotiation : public ::testing::TestWithParam<uint8_t> {};

// The SYN-ACK agrees with ECE alone; both flags only reflect ours (s.6.1.1.2).
TEST_P(ActiveNegotiation, OnlyEceAloneAgrees_TCP_3168_6_1_1_01) {
  EcnPeer p(with_ecn(Ecn::Offer));
  compare(p.connect(), {.flags = flag::kSyn | kBoth});
  p.answer_syn(GetParam());
  EXPECT_EQ(p.send_one().ecn, GetParam() == flag::kEce ? kEct0 : 0);
}
INSTANTIATE_TEST_SUITE_P(Ecn, ActiveNegotiation,
                         ::testing::Values(0, flag::kEce, flag::kCwr, kBoth));

TEST(Ecn, IsNotAskedForUnlessConfigured) {
  for (const Ecn mode : {Ecn::Off, Ecn::Accept}) {
    EcnPeer p(with_ecn(mode));
    compare(p.connect(), {.flags = flag::kSyn});
    p.answer_syn(flag::kEce);  // an answer to what was never asked
    EXPECT_EQ(p.send_one().ecn, 0);
  }
}

// A middlebox may swallow SYNs that ask (s.6.1.1.1).
TEST(Ecn, ASynThatIsNotAnsweredFallsBack_TCP_3168_6_1_1_01) {
  for (const uint32_t attempts : {1u, 3u}) {
    tcp::Config config = with_ecn(Ecn::Offer);
    config.ecn_syn_attempts = attempts;
    EcnPeer p(config);
    compare(p.connect(), {.flags = flag::kSyn | kBoth});
    for (uint32_t i = 1; i < attempts; ++i) {
      p.wait(p.stack.next_deadline() - p.now);
      while (p.silent()) p.wait(milliseconds(100));
      p.expect({.flags = flag::kSyn | kBoth});
    }
    while (p.silent()) p.wait(milliseconds(100));
    p.expect({.flags = flag::kSyn});
    EXPECT_EQ(p.stack.counters().ecn_fallbacks, 1u);
    // The answer to the first SYN after all: no ECT (s.6.1.1), but marks are still echoed.
    p.answer_syn(flag::kEce);
    EXPECT_EQ(p.send_one().ecn, 0);
    p.give(100, kCe);
    p.expect({.flags = flag::kAck | flag::kEce});
  }
}

// The peer falls back while our SYN-ACK is on its way.
TEST(Ecn, ThePeersFallbackIsFollowed_TCP_3168_6_1_1_01) {
  EcnPeer p(with_ecn(Ecn::Accept));
  p.acceptor.next.push_back(&p.user);
  p.inject({.seq = kIrs, .flags = flag::kSyn | kBoth, .options = option_mss(kMss)});
  p.expect({.flags = flag::kSyn | flag::kAck | flag::kEce});
  p.inject({.seq = kIrs, .flags = flag::kSyn, .options = option_mss(kMss)});
  p.expect({.flags = flag::kSyn | flag::kAck});
  p.inject({.seq = kIrs + 1, .ack = kIss + 1, .flags = flag::kAck});
  EXPECT_EQ(p.send_one().ecn, 0);
}

// RFC 3168 s.6.1.1.1, where the answer to the first SYN overtakes the SYN that does not ask.
TEST(Ecn, AFallbackThatComesLateIsFollowed_TCP_3168_6_1_1_01) {
  constexpr uint32_t kOther = kIrs - 1000;
  for (const bool active : {false, true}) {
    for (const auto& [seq, asks] : {std::pair{kIrs, false}, {kIrs, true}, {kOther, false}}) {
      EcnPeer p(with_ecn(Ecn::Offer));
      if (active) {
        p.connect();
        p.answer_syn(flag::kEce);
      } else {
        p.open_passive(kBoth);
      }
      EXPECT_EQ(p.send_one().ecn, kEct0);
      const uint8_t setup = active ? flag::kAck | flag::kEce : kBoth;
      p.inject({.seq = seq,
                .ack = active ? kIss + 1 : 0,
                .flags = static_cast<uint8_t>(flag::kSyn | (asks     ? setup
                                                            : active ? flag::kAck
                                                                     : uint8_t{0})),
                .options = option_mss(kMss)});
      p.expect({.flags = flag::kAck});  // RFC 5961 s.4
      EXPECT_EQ(p.send_one().ecn, seq == kIrs && !asks ? 0 : kEct0);
      // What was marked meanwhile is answered, both ways.
      p.give(100, kCe);
      p.expect({.flags = flag::kAck | flag::kEce});
      p.ack(2 * kMss, flag::kEce);
      EXPECT_EQ(p.stack.counters().ecn_reductions, 1u);
      EXPECT_NE(p.send_one().flags & flag::kCwr, 0);
    }
  }
}

// Simultaneous open.
TEST(Ecn, ASimultaneousOpenAgreesWhenAllFourAsk_TCP_3168_6_1_1_01) {
  for (const bool last : {true, false}) {
    EcnPeer p(with_ecn(Ecn::Offer));
    compare(p.connect(), {.flags = flag::kSyn | kBoth});
    p.inject({.seq = kIrs, .flags = flag::kSyn | kBoth, .options = option_mss(kMss)});
    p.expect({.flags = flag::kSyn | flag::kAck | flag::kEce});
    p.inject({.seq = kIrs,
              .ack = kIss + 1,
              .flags = static_cast<uint8_t>(flag::kSyn | flag::kAck | (last ? flag::kEce : 0)),
              .options = option_mss(kMss)});
    ASSERT_TRUE(p.user.is_established);
    p.egress.sent.clear();
    EXPECT_EQ(p.send_one().ecn, last ? kEct0 : 0);
  }
}

TEST(Ecn, OneReductionAWindowAndCwrOnce_TCP_3168_6_1_2_01) {
  EcnPeer p(with_ecn(Ecn::Accept));
  p.open_passive(kBoth);
  p.send(40);
  ASSERT_EQ(p.egress.sent.size(), 10u);  // the initial window
  while (!p.silent()) p.expect({.payload = kMss, .ecn = kEct0});
  p.ack(kMss, flag::kEce);
  EXPECT_EQ(p.cwnd(), 5 * kMss);
  EXPECT_TRUE(p.silent());
  for (uint32_t i = 2; i <= 5; ++i) p.ack(i * kMss, flag::kEce);
  EXPECT_EQ(p.cwnd(), 5 * kMss);  // the same window: no second reduction, and no growth
  EXPECT_TRUE(p.silent());
  p.ack(6 * kMss, flag::kEce);
  p.expect(
      {.flags = flag::kAck | flag::kCwr, .payload = kMss, .ecn = kEct0});  // the first new data
  p.ack(7 * kMss);
  p.expect({.payload = kMss, .ecn = kEct0});
  EXPECT_EQ(p.stack.counters().ecn_reductions, 1u);
  EXPECT_EQ(p.stack.counters().cwr_out, 1u);
  EXPECT_EQ(p.stack.counters().ece_in, 6u);
  const uint32_t before = p.cwnd();
  p.ack(10 * kMss, flag::kEce);  // up to SND.NXT at the reduction: still that window
  EXPECT_EQ(p.stack.counters().ecn_reductions, 1u);
  p.ack(11 * kMss, flag::kEce);  // beyond: a new one
  EXPECT_EQ(p.stack.counters().ecn_reductions, 2u);
  EXPECT_EQ(p.cwnd(), before / 2);
}

// A loss and a mark of one window count once; CWR follows the loss as well.
TEST(Ecn, ALossAndAMarkAreOneReduction_TCP_3168_6_1_2_01) {
  EcnPeer p(with_ecn(Ecn::Accept));
  p.open_passive(kBoth);
  p.send(40);
  p.egress.sent.clear();
  p.ack(0);
  p.ack(0);
  p.egress.sent.clear();  // limited transmit
  p.ack(0, flag::kEce);   // the third duplicate: the first segment is lost
  EXPECT_EQ(p.stack.counters().fast_recoveries, 1u);
  EXPECT_EQ(p.connection().cc.ssthresh(), 5 * kMss);
  // TCP-3168-6.1.4-01: retransmissions are not ECN-capable.
  p.expect({.seq = kIss + 1, .payload = kMss});
  p.egress.sent.clear();
  const uint64_t reductions = p.stack.counters().ecn_reductions;
  p.ack(12 * kMss, flag::kEce);
  EXPECT_EQ(p.stack.counters().ecn_reductions, reductions);
  EXPECT_EQ(p.connection().cc.ssthresh(), 5 * kMss);
  ASSERT_FALSE(p.silent());
  p.expect({.flags = flag::kAck | flag::kCwr,
            .seq = kIss + 1 + 12 * kMss,
            .payload = kMss,
            .ecn = kEct0});
}

// CWR after a time-out, on new data and not on what is sent again.
TEST(Ecn, ATimeoutIsAnnouncedOnNewData_TCP_3168_6_1_2_01) {
  tcp::Config config = with_ecn(Ecn::Accept);
  config.frto = false;
  EcnPeer p(config);
  p.open_passive(kBoth);
  p.send(4);
  p.egress.sent.clear();
  while (p.silent()) p.wait(milliseconds(50));
  p.expect({.seq = kIss + 1, .payload = kMss});
  p.ack(4 * kMss);
  p.egress.sent.clear();
  EXPECT_EQ(p.send_one().flags & kBoth, flag::kCwr);
}

// At one segment the rate goes on falling by the retransmission timer.
TEST(Ecn, AWindowOfOneSegmentWaitsForTheTimer_TCP_3168_6_1_2_01) {
  EcnPeer p(with_ecn(Ecn::Accept));
  p.open_passive(kBoth);
  p.send(60);
  uint32_t acked = 0;
  for (int i = 0; i < 200 && p.stack.counters().ecn_holds == 0; ++i) {
    if (p.silent()) {
      p.wait(milliseconds(1));
      continue;
    }
    const Segment s = p.next();
    acked = s.seq + s.payload - (kIss + 1);
    if (p.silent()) p.ack(acked, flag::kEce);
  }
  EXPECT_EQ(p.stack.counters().ecn_holds, 1u);
  EXPECT_EQ(p.cwnd(), kMss);
  ASSERT_TRUE(p.silent());
  const base::Now start = p.now;
  while (p.silent()) p.wait(milliseconds(1));
  EXPECT_GE(p.now - start, milliseconds(200));  // the RTO
  EXPECT_LE(p.now - start, milliseconds(1100));
  const base::Duration first = p.now - start;
  const Segment s = p.expect({.flags = flag::kAck | flag::kCwr, .payload = kMss, .ecn = kEct0});
  EXPECT_TRUE(p.silent());
  p.ack(s.seq - (kIss + 1));  // without a mark, and of nothing new: it ends no row of marks
  EXPECT_TRUE(p.silent());
  p.ack(s.seq + s.payload - (kIss + 1), flag::kEce);  // and again: the wait doubles
  EXPECT_EQ(p.stack.counters().ecn_holds, 2u);
  EXPECT_EQ(p.stack.counters().pacing_waits, 2u) << "each hold is one";
  const base::Now second = p.now;
  while (p.silent()) p.wait(milliseconds(1));
  EXPECT_GT(p.now - second, first + first / 2);
}

// The wait doubles for marks that follow each other. An ACK without one ends the row, however the
// segment that carries it is taken, and whatever makes the window small again.
TEST(Ecn, AnAckWithoutAMarkEndsTheRowOfHolds_TCP_3168_6_1_2_01) {
  tcp::Config config = with_ecn(Ecn::Accept);
  config.frto = false;
  for (const bool predicting : {false, true}) {
    EcnPeer p(config);
    p.stack.set_prediction(predicting);
    p.open_passive(kBoth);
    // A short record leaves; tells how long it waited for that.
    const auto send_short = [&] {
      const base::Now start = p.now;
      p.send_record(100);
      while (p.silent()) p.wait(milliseconds(1));
      const Segment s = p.expect({.flags = kAny, .payload = 100, .ecn = kEct0});
      p.sent_to = s.seq + s.payload - (kIss + 1);
      return p.now - start;
    };
    for (int i = 0; i < 10 && p.stack.counters().ecn_holds == 0; ++i) {
      send_short();
      p.ack(p.sent_to, flag::kEce);
    }
    EXPECT_EQ(p.stack.counters().ecn_holds, 1u);
    EXPECT_EQ(p.cwnd(), kMss);
    const base::Duration first = send_short();
    EXPECT_GE(first, milliseconds(200));
    p.ack(p.sent_to);  // without a mark
    EXPECT_GT(p.cwnd(), kMss);
    send_short();
    while (p.stack.counters().timeouts == 0) p.wait(milliseconds(50));
    p.egress.sent.clear();
    p.ack(p.sent_to, flag::kEce);  // of the window that the time-out has reduced
    EXPECT_EQ(p.cwnd(), kMss);
    EXPECT_EQ(send_short(), base::Duration(0));
    p.ack(p.sent_to, flag::kEce);
    EXPECT_EQ(p.stack.counters().ecn_holds, 2u);
    const base::Duration second = send_short();
    EXPECT_GE(second, milliseconds(200));
    EXPECT_LT(second, first + first / 2) << predicting;
  }
}

TEST(Ecn, MarksAreEchoedUntilCwr_TCP_3168_6_1_3_01) {
  EcnPeer p(with_ecn(Ecn::Accept));
  p.open_passive(kBoth);
  p.give(100, kEct0);
  p.expect({.flags = flag::kAck});
  p.give(100, kCe);
  p.expect({.flags = flag::kAck | flag::kEce});
  for (int i = 0; i < 3; ++i) {
    p.give(100, kEct0);
    p.expect({.flags = flag::kAck | flag::kEce});
  }
  EXPECT_EQ(p.send_one().flags & kBoth, flag::kEce);  // data carries it, too
  p.give(100, kEct0, flag::kCwr);
  p.expect({.flags = flag::kAck});
  p.give(100, kCe, flag::kCwr);  // CWR first, then CE
  p.expect({.flags = flag::kAck | flag::kEce});
  p.give(100, 0, flag::kCwr);
  p.expect({.flags = flag::kAck});
  EXPECT_EQ(p.stack.counters().ce_in, 2u);
  EXPECT_EQ(p.stack.counters().cwr_in, 3u);
}

// One mark among many delayed ACKs is enough, and does not wait.
TEST(Ecn, AMarkIsNotDelayed_TCP_3168_6_1_3_01) {
  EcnPeer p(with_ecn(Ecn::Accept));
  p.open_passive(kBoth);
  p.inject({.seq = kIrs + 1, .ack = kIss + 1, .flags = flag::kAck, .payload = 100});
  EXPECT_TRUE(p.silent());  // a delayed ACK
  p.inject({.seq = kIrs + 101, .ack = kIss + 1, .flags = flag::kAck, .payload = 100, .ecn = kCe});
  p.expect({.flags = flag::kAck | flag::kEce});
}

// RFC 3168 s.6.1.5: what lies outside of the window is forged or stale.
TEST(Ecn, MarksOutsideTheWindowAreIgnored) {
  EcnPeer p(with_ecn(Ecn::Accept));
  p.open_passive(kBoth);
  p.give(100, kEct0);
  p.egress.sent.clear();
  for (const uint32_t seq : {kIrs + 1, kIrs + 1 + 10'000'000}) {
    p.inject({.seq = seq, .ack = kIss + 1, .flags = flag::kAck, .payload = 50, .ecn = kCe});
    p.expect({.flags = flag::kAck});
  }
  EXPECT_EQ(p.stack.counters().ce_in, 0u);
}

// Pure ACKs, window probes, the bare FIN.
TEST(Ecn, WhatIsNotNewDataIsNotCapable_TCP_3168_6_1_4_01) {
  EcnPeer p(with_ecn(Ecn::Accept));
  p.open_passive(kBoth);
  p.give(100, kEct0);
  p.expect({.ack = kIrs + 101});
  EXPECT_EQ(p.send_one().ecn, kEct0);
  p.inject(
      {.seq = kIrs + 1 + p.received, .ack = kIss + 1 + kMss, .flags = flag::kAck, .window = 0});
  p.user.queue(100);
  while (p.silent()) p.wait(milliseconds(100));
  p.expect({.seq = kIss + kMss, .payload = 1});
  p.inject({.seq = kIrs + 1 + p.received, .ack = kIss + 1 + kMss, .flags = flag::kAck});
  p.expect({.flags = kPshAck, .payload = 100, .ecn = kEct0});
  p.inject({.seq = kIrs + 1 + p.received, .ack = kIss + 101 + kMss, .flags = flag::kAck});
  p.user.stream->close();
  p.stack.output(p.now);
  p.expect({.flags = kFinAck});
}

TEST(Ecn, FlagsMeanNothingWithoutAgreement) {
  EcnPeer p(with_ecn(Ecn::Accept));
  p.open_passive(0);
  p.send(20);
  p.egress.sent.clear();
  p.ack(kMss, flag::kEce);
  EXPECT_EQ(p.stack.counters().ece_in, 0u);
  EXPECT_EQ(p.stack.counters().ecn_reductions, 0u);
  EXPECT_GT(p.cwnd(), 10 * kMss);
}

}  // namespace
}  // namespace rnic::testing

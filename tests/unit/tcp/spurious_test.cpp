// Retransmissions that were for nothing: F-RTO (RFC 5682), Eifel (RFC 4015), D-SACK (RFC 2883).
#include "pair.hpp"
#include "raw_peer.hpp"
#include "unit/tcp/inside.hpp"

namespace rnic::testing {
namespace {

constexpr uint32_t kStampedMss = 1448;  // with timestamps

/// The stack has sent ten segments and its timer has expired once.
struct TimedOutPeer : RawPeer {
  explicit TimedOutPeer(bool with_sack, bool frto = true) : RawPeer(config_of(with_sack, frto)) {
    accept(with_sack ? option_mss(kMss) + option_sack_permitted() : option_mss(kMss));
    for (int i = 0; i < 10; ++i) user.queue(kMss);  // no new data for tail probes
    stack.output(now);
    EXPECT_EQ(egress.sent.size(), 10u);
    cwnd_before = connection().cc.cwnd();
    ssthresh_before = connection().cc.ssthresh();
    egress.sent.clear();
    time_out();
    expect({.seq = kIss + 1, .payload = kMss});
    for (int i = 0; i < 20; ++i) user.queue(kMss);
    stack.output(now);
    EXPECT_TRUE(silent());
    EXPECT_EQ(connection().cc.cwnd(), kMss);
    resent_before = stack.counters().retransmitted_segments;
  }
  static tcp::Config config_of(bool with_sack, bool frto) {
    tcp::Config c = bare();
    c.sack = with_sack;
    c.frto = frto;
    return c;
  }
  /// Tail probes have no part in this.
  void time_out() {
    const uint64_t before = stack.counters().timeouts;
    while (stack.counters().timeouts == before) {
      egress.sent.clear();
      wait(milliseconds(10));
    }
    while (egress.sent.size() > 1) egress.sent.pop_front();
  }
  void ack(uint32_t segments, const std::vector<std::pair<uint32_t, uint32_t>>& sacked = {}) {
    std::vector<std::pair<uint32_t, uint32_t>> blocks;
    for (const auto& [from, to] : sacked) {
      blocks.emplace_back(kIss + 1 + from * kMss, kIss + 1 + to * kMss);
    }
    inject({.seq = kIrs + 1,
            .ack = kIss + 1 + segments * kMss,
            .flags = flag::kAck,
            .options = blocks.empty() ? std::vector<uint8_t>{} : option_sack(blocks)});
  }
  /// Numbers of the segments that the stack has sent since.
  std::vector<uint32_t> sent() {
    std::vector<uint32_t> numbers;
    while (!silent()) numbers.push_back((next().seq - kIss - 1) / kMss);
    return numbers;
  }
  [[nodiscard]] tcp::Inside connection() { return tcp::Inside(*user.stream); }
  uint64_t resent_before = 0;
  uint32_t cwnd_before = 0;
  uint32_t ssthresh_before = 0;
};

using Numbers = std::vector<uint32_t>;

// RFC 5682 s.3.1 steps 2b and 3b
TEST(FRto, NewDataShowsThatTheTimeoutWasSpurious) {
  for (const bool with_sack : {true, false}) {
    TimedOutPeer p(with_sack);
    p.ack(1);
    EXPECT_EQ(p.sent(), (Numbers{10, 11}));  // two new segments, nothing again
    p.ack(2);
    EXPECT_EQ(p.stack.counters().frto_undos, 1u);
    EXPECT_EQ(p.stack.counters().spurious_timeouts, 1u);
    EXPECT_EQ(p.connection().cc.ssthresh(), p.ssthresh_before);
    EXPECT_GE(p.connection().cc.cwnd(), p.cwnd_before);
    EXPECT_EQ(p.connection().recovery.phase(), tcp::RecoveryPhase::Open);
    for (uint32_t i = 3; i <= 12; ++i) p.ack(i);
    for (const uint32_t n : p.sent()) EXPECT_GE(n, 12u);
    EXPECT_EQ(p.stack.counters().retransmitted_segments, p.resent_before);
  }
}

// Step 3b by SACK alone: what was sent before the time-out and never again has arrived.
TEST(FRto, ASackOfAnOriginalShowsItToo) {
  TimedOutPeer p(true);
  p.ack(1);
  EXPECT_EQ(p.sent(), (Numbers{10, 11}));
  p.ack(1, {{4, 5}});
  EXPECT_EQ(p.stack.counters().frto_undos, 1u);
}

// Step 3a: the new data arrived, the old did not.
TEST(FRto, ARealLossIsRepairedConventionally) {
  for (const bool with_sack : {true, false}) {
    TimedOutPeer p(with_sack);
    p.ack(1);
    EXPECT_EQ(p.sent(), (Numbers{10, 11}));
    p.ack(1, with_sack ? std::vector<std::pair<uint32_t, uint32_t>>{{10, 11}}
                       : std::vector<std::pair<uint32_t, uint32_t>>{});
    EXPECT_EQ(p.stack.counters().spurious_timeouts, 0u);
    EXPECT_LE(p.connection().cc.cwnd(), 3 * kMss);
    const Numbers again = p.sent();
    ASSERT_FALSE(again.empty());
    EXPECT_EQ(again.front(), 1u);
    for (uint32_t i = 2; i <= 10; ++i) p.ack(i);
    EXPECT_EQ(p.stack.counters().spurious_timeouts, 0u);
    p.ack(12);
    EXPECT_EQ(p.user.released_to, 12u * kMss);
  }
}

// Step 2a: everything up to RecoveryPoint is there.
TEST(FRto, AnAckOfEverythingIsNoEvidence) {
  TimedOutPeer p(true);
  p.ack(10);
  EXPECT_EQ(p.stack.counters().spurious_timeouts, 0u);
  EXPECT_EQ(p.connection().cc.cwnd(), 2 * kMss);
  EXPECT_EQ(p.sent(), (Numbers{10, 11}));
  EXPECT_EQ(p.connection().recovery.phase(), tcp::RecoveryPhase::Open);
}

// Section 2.1 step 2a: without SACK a duplicate ACK ends it.
TEST(FRto, ADuplicateAckEndsItWithoutSack) {
  TimedOutPeer p(false);
  p.ack(0);
  p.ack(1);
  const Numbers again = p.sent();
  ASSERT_FALSE(again.empty());
  EXPECT_EQ(again.front(), 1u);
}

// And nothing else does that acknowledges nothing: not a duplicate where SACK says what arrived,
// not an ACK that only moves the window.
TEST(FRto, AnAckOfNothingNewDoesNotEndIt) {
  for (const bool with_sack : {true, false}) {
    TimedOutPeer p(with_sack);
    if (with_sack) {
      p.ack(0);
    } else {
      p.inject({.seq = kIrs + 1, .ack = kIss + 1, .flags = flag::kAck, .window = 60000});
    }
    EXPECT_TRUE(p.silent());
    p.ack(1);
    EXPECT_EQ(p.sent(), (Numbers{10, 11})) << "new data goes out, as its step 2 asks";
  }
}

// RFC 4015 s.3.1 step 11 takes one sample: the round trips behind it count as ever.
TEST(FRto, TheTimerAdaptsOnce) {
  TimedOutPeer p(false);
  p.ack(1);
  p.ack(3);
  ASSERT_EQ(p.stack.counters().frto_undos, 1u);
  p.ack(12);  // measures nothing: the first of them went out twice
  p.wait(milliseconds(40));
  p.ack(13);
  EXPECT_EQ(p.connection().rto.srtt(), milliseconds(40));
  p.wait(milliseconds(24));
  p.ack(14);  // sent with the one before, 64 ms ago
  EXPECT_EQ(p.connection().rto.srtt(), milliseconds(43)) << "an eighth of the way";
}

// Step 2b: no new data, or no room for it.
TEST(FRto, WithoutNewDataTheRecoveryIsConventional) {
  TimedOutPeer p(true);
  p.inject({.seq = kIrs + 1, .ack = kIss + 1 + kMss, .flags = flag::kAck, .window = 9 * kMss});
  EXPECT_EQ(p.sent(), (Numbers{1, 2}));
}

TEST(FRto, ASecondTimeoutOfTheSameSegmentStartsOver) {
  TimedOutPeer p(true);
  p.time_out();
  EXPECT_EQ(p.sent(), (Numbers{0}));
  p.ack(1);
  EXPECT_EQ(p.sent(), (Numbers{10, 11}));
  p.ack(3);
  EXPECT_EQ(p.stack.counters().frto_undos, 1u);
}

TEST(FRto, TheKnobTurnsItOff) {
  TimedOutPeer p(true, false);
  p.ack(1);
  EXPECT_EQ(p.sent(), (Numbers{1, 2}));
}

tcp::Config options(bool timestamps, bool sack, bool frto) {
  tcp::Config c;
  c.timestamps = timestamps;
  c.sack = sack;
  c.frto = frto;
  return c;
}

struct Finder {
  bool timestamps;
  bool sack;
  bool frto;
};

class DelaySpike : public ::testing::TestWithParam<Finder> {};

// The path stalls for longer than the RTO, nothing is lost: whichever way finds it, the window and
// the algorithm's state come back and hardly anything is sent again.
TEST_P(DelaySpike, IsUndone) {
  const Finder f = GetParam();
  const tcp::Config config = options(f.timestamps, f.sack, f.frto);
  Pair p(config, config);
  p.link.delay = milliseconds(20);
  ASSERT_TRUE(p.open());
  for (int i = 0; i < 6000; ++i) p.a.queue(1400);
  p.link.run(milliseconds(500));
  const tcp::Inside sender(*p.a.stream);
  const uint32_t cwnd = sender.cc.cwnd();
  const uint32_t ssthresh = sender.cc.ssthresh();
  const base::Duration rto = sender.rto.rto();
  const base::Now stall = p.link.now + milliseconds(700);
  p.link.hook = [&](const LinkFrame&) {
    return Fate{.extra = std::max<base::Duration>(stall - p.link.now, base::Duration(0))};
  };
  base::Duration longest{0};
  ASSERT_TRUE(p.link.run_until(
      [&] {
        if (p.link.now > stall) longest = std::max(longest, sender.rto.rto());
        return p.link.a.counters().timeouts != 0 && p.link.now > stall + milliseconds(60);
      },
      seconds(10)));
  const tcp::Counters& n = p.link.a.counters();
  EXPECT_EQ(n.spurious_timeouts, 1u);
  EXPECT_EQ(n.eifel_undos, f.timestamps ? 1u : 0u);
  EXPECT_EQ(n.frto_undos, !f.timestamps && f.frto ? 1u : 0u);
  EXPECT_EQ(n.dsack_undos, !f.timestamps && !f.frto ? 1u : 0u);
  EXPECT_GE(sender.cc.ssthresh(), std::min(ssthresh, cwnd / 10 * 9));
  p.link.hook = nullptr;
  p.link.run(milliseconds(600));
  EXPECT_GE(sender.cc.cwnd(), cwnd * 9 / 10);
  EXPECT_GT(longest, rto);
  if (f.timestamps || f.frto) {
    EXPECT_LE(n.retransmitted_segments, 3u);
  }
  ASSERT_TRUE(p.drain());
  EXPECT_TRUE(p.b.clean());
}
INSTANTIATE_TEST_SUITE_P(Spurious, DelaySpike,
                         ::testing::Values(Finder{true, true, true}, Finder{true, false, true},
                                           Finder{true, true, false}, Finder{false, true, true},
                                           Finder{false, false, true}));

// The negative twin: the same silence, but everything was lost.
TEST(Spurious, ARealOutageIsNotUndone) {
  for (const bool timestamps : {true, false}) {
    for (const bool sack : {true, false}) {
      const tcp::Config config = options(timestamps, sack, true);
      Pair p(config, config);
      p.link.delay = milliseconds(20);
      ASSERT_TRUE(p.open());
      for (int i = 0; i < 3000; ++i) p.a.queue(1400);
      // A flight is on its way out then: were it its ACKs, a time-out would be a spurious one.
      p.link.run(milliseconds(310));
      p.link.hook = [](const LinkFrame&) { return Fate{.drop = true}; };
      p.link.run(milliseconds(400));
      p.link.hook = nullptr;
      ASSERT_TRUE(p.drain());
      EXPECT_GT(p.link.a.counters().timeouts, 0u);
      EXPECT_EQ(p.link.a.counters().spurious_timeouts, 0u);
      EXPECT_TRUE(p.b.clean());
    }
  }
}

/// Timestamps by hand. The stack's clock ticks in milliseconds.
struct StampedPeer : RawPeer {
  /// \param asks the peer's SYN asks for ECN
  explicit StampedPeer(bool asks = false) : RawPeer(config()) {
    acceptor.next.push_back(&user);
    inject({.seq = kIrs,
            .flags = static_cast<uint8_t>(flag::kSyn | (asks ? flag::kEce | flag::kCwr : 0)),
            .options = option_mss(kMss) + option_sack_permitted() + option_timestamps(1, 0)});
    next();
    wait(milliseconds(50));  // the RTT: tail probes come later than what follows
    inject({.seq = kIrs + 1,
            .ack = kIss + 1,
            .flags = flag::kAck,
            .options = option_timestamps(2, 0)});
  }
  static tcp::Config config() {
    tcp::Config c = bare();
    c.timestamps = c.sack = true;
    c.ecn = Ecn::Accept;
    c.congestion_control = CongestionControl::NewReno;
    return c;
  }
  void ack(uint32_t segments, uint32_t echo,
           const std::vector<std::pair<uint32_t, uint32_t>>& sacked = {}) {
    std::vector<std::pair<uint32_t, uint32_t>> blocks;
    for (const auto& [from, to] : sacked) {
      blocks.emplace_back(kIss + 1 + from * kStampedMss, kIss + 1 + to * kStampedMss);
    }
    inject({.seq = kIrs + 1,
            .ack = kIss + 1 + segments * kStampedMss,
            .flags = flag::kAck,
            .options = option_timestamps(++value, echo) +
                       (blocks.empty() ? std::vector<uint8_t>{} : option_sack(blocks))});
  }
  [[nodiscard]] tcp::Inside connection() { return tcp::Inside(*user.stream); }
  uint32_t value = 10;
};

// RFC 3522 s.3.2: a fast retransmission, too, and only by an echo from before it.
TEST(Eifel, AReorderedSegmentUndoesFastRecovery) {
  for (const bool original : {true, false}) {
    StampedPeer p;
    for (int i = 0; i < 30; ++i) p.user.queue(kStampedMss);
    p.stack.output(p.now);
    ASSERT_EQ(p.egress.sent.size(), 10u);
    const uint32_t first_stamp = p.next().parsed.timestamps->value;
    p.egress.sent.clear();
    const uint32_t cwnd = p.connection().cc.cwnd();
    p.wait(milliseconds(20));
    p.ack(0, first_stamp, {{1, 4}});
    ASSERT_EQ(p.stack.counters().fast_recoveries, 1u);
    const uint32_t second_stamp = p.next().parsed.timestamps->value;
    ASSERT_GT(second_stamp, first_stamp);
    p.wait(milliseconds(5));
    p.ack(4, original ? first_stamp : second_stamp);
    EXPECT_EQ(p.stack.counters().eifel_undos, original ? 1u : 0u);
    if (original) {
      EXPECT_GE(p.connection().cc.cwnd(), cwnd);
      EXPECT_EQ(p.connection().cc.ssthresh(), UINT32_MAX);
    } else {
      EXPECT_LE(p.connection().cc.ssthresh(), cwnd / 2);
    }
  }
}

// RFC 3522 s.3.2: the stamp that Eifel compares with is that of the retransmission which began the
// recovery. Where the timer expired within it the echo of something older proves nothing of the
// time-out, and both reductions stay.
TEST(Eifel, ATimeoutWithinARecoveryIsNotUndone) {
  for (const bool timed_out : {true, false}) {
    StampedPeer p;
    for (int i = 0; i < 30; ++i) p.user.queue(kStampedMss);
    p.stack.output(p.now);
    const uint32_t first_stamp = p.next().parsed.timestamps->value;
    const uint32_t cwnd = p.connection().cc.cwnd();
    p.wait(milliseconds(20));
    p.ack(0, first_stamp, {{1, 4}});
    ASSERT_EQ(p.connection().recovery.phase(), tcp::RecoveryPhase::Recovery);
    while (timed_out && p.stack.counters().timeouts == 0) p.wait(milliseconds(10));
    p.ack(1, first_stamp);
    EXPECT_EQ(p.stack.counters().eifel_undos, timed_out ? 0u : 1u);
    EXPECT_EQ(p.stack.counters().spurious_timeouts, 0u);
    if (timed_out) {
      EXPECT_EQ(p.connection().recovery.phase(), tcp::RecoveryPhase::Loss);
      EXPECT_LE(p.connection().cc.ssthresh(), cwnd / 2 + kStampedMss);
    } else {
      EXPECT_EQ(p.connection().cc.ssthresh(), UINT32_MAX);
    }
  }
}

// RFC 7323 s.5.3: what comes again does not set TS.Recent, so that an ACK of it echoes the first
// copy. When the ACK of that one was lost this is no round trip but the time-out.
TEST(Rto, AnEchoFromBeforeTheTimeoutMeasuresNothing) {
  for (const bool lost_ack : {true, false}) {
    StampedPeer p;
    p.send_record(kStampedMss);
    const base::Duration srtt = p.connection().rto.srtt();
    const uint32_t first_stamp = p.next().parsed.timestamps->value;
    while (p.stack.counters().timeouts < 2) p.wait(milliseconds(10));
    const uint32_t last_stamp = p.egress.sent.back().parsed.timestamps->value;
    ASSERT_GT(last_stamp, first_stamp + 500);
    p.wait(milliseconds(20));
    p.ack(1, lost_ack ? first_stamp : last_stamp);
    EXPECT_LE(p.connection().rto.srtt(), srtt);
    EXPECT_EQ(p.connection().rto.backoff(), lost_ack ? 2u : 0u);
    p.user.queue(kStampedMss);
    p.egress.sent.clear();
    p.stack.output(p.now);
    p.wait(milliseconds(20));
    p.ack(2, p.next().parsed.timestamps->value);
    EXPECT_EQ(p.connection().rto.backoff(), 0u);
    EXPECT_TRUE(lost_ack || p.connection().rto.rto() < milliseconds(400));
  }
}

// RFC 6298 s.5.7: of a round trip two samples are enough, but the first measurement behind a
// time-out is taken, however soon after the last one it comes: it ends the back-off.
TEST(Rto, TheFirstMeasurementBehindATimeoutIsTaken) {
  for (const bool timed_out : {true, false}) {
    tcp::Config config;
    config.rto_min = milliseconds(1);
    tcp::RtoEstimator e(config);
    const base::Now start = base::from_nanos(1'000'000'000);
    ASSERT_TRUE(e.offer(milliseconds(100), start));
    const base::Duration rto = e.rto();
    if (timed_out) {
      e.back_off();
      EXPECT_EQ(e.rto(), 2 * rto);
    }
    EXPECT_EQ(e.offer(milliseconds(180), start + milliseconds(1)), timed_out);
    EXPECT_EQ(e.srtt(), timed_out ? milliseconds(110) : milliseconds(100));
    EXPECT_EQ(e.backoff(), 0u);
  }
}

// RFC 2883, RFC 3708: the retransmission is reported as a duplicate.
TEST(DSack, AReportedDuplicateUndoesTheReduction) {
  for (const bool reported : {true, false}) {
    StampedPeer p;
    for (int i = 0; i < 30; ++i) p.user.queue(kStampedMss);
    p.stack.output(p.now);
    const uint32_t stamp = p.next().parsed.timestamps->value;
    p.egress.sent.clear();
    const uint32_t cwnd = p.connection().cc.cwnd();
    p.wait(milliseconds(1));
    p.ack(0, stamp, {{1, 4}});
    ASSERT_EQ(p.stack.counters().fast_recoveries, 1u);
    const uint32_t second = p.next().parsed.timestamps->value;
    p.ack(10, second);  // the echo is no help
    const uint32_t now_acked = 10;
    if (reported) p.ack(now_acked, second, {{0, 1}});
    EXPECT_EQ(p.stack.counters().dsack_undos, reported ? 1u : 0u);
    if (reported) {
      EXPECT_EQ(p.connection().cc.ssthresh(), UINT32_MAX);
    } else {
      EXPECT_LE(p.connection().cc.ssthresh(), cwnd / 2 + 2 * kStampedMss);
    }
  }
}

// RFC 3708 s.3: also when nothing is outstanding any more, as behind the last flight of a response.
// An ECN-Echo on it is congestion all the same (RFC 4015 s.3.1 step 9).
TEST(DSack, ThatComesWhenAllIsAcknowledgedUndoes) {
  for (const bool marked : {false, true}) {
    StampedPeer p(marked);
    for (int i = 0; i < 10; ++i) p.user.queue(kStampedMss);
    p.stack.output(p.now);
    const uint32_t stamp = p.next().parsed.timestamps->value;
    p.egress.sent.clear();
    p.wait(milliseconds(1));
    p.ack(0, stamp, {{1, 4}});
    ASSERT_EQ(p.stack.counters().fast_recoveries, 1u);
    const uint32_t second = p.next().parsed.timestamps->value;
    p.ack(10, second);
    ASSERT_EQ(p.connection().tcb.flight(), 0u);
    EXPECT_NE(p.connection().cc.ssthresh(), UINT32_MAX);
    const uint32_t cwnd = p.connection().cc.cwnd();
    const uint32_t duplicate = kIss + 1;
    p.inject({.seq = kIrs + 1,
              .ack = kIss + 1 + 10 * kStampedMss,
              .flags = static_cast<uint8_t>(flag::kAck | (marked ? flag::kEce : 0)),
              .options = option_timestamps(++p.value, second) +
                         option_sack({{duplicate, duplicate + kStampedMss}})});
    EXPECT_EQ(p.stack.counters().dsack_undos, 1u);
    EXPECT_EQ(p.connection().cc.ssthresh() == UINT32_MAX, !marked);
    // RFC 4015 s.3.4: a burst of an initial window is fine; the path is empty.
    EXPECT_EQ(p.connection().cc.cwnd(), marked ? cwnd : p.connection().cc.initial_window());
    EXPECT_EQ(p.connection().recovery.phase(), tcp::RecoveryPhase::Open);
  }
}

// RFC 4015 s.3.1 step 9: an ACK with ECN-Echo does not give the window back.
TEST(Eifel, AMarkOnTheAckKeepsTheReduction) {
  for (const bool marked : {true, false}) {
    struct Marked : RawPeer {
      using RawPeer::RawPeer;
    } p(StampedPeer::config());
    p.acceptor.next.push_back(&p.user);
    p.inject({.seq = kIrs,
              .flags = flag::kSyn | flag::kEce | flag::kCwr,
              .options = option_mss(kMss) + option_timestamps(1, 0)});
    p.egress.sent.clear();
    p.inject({.seq = kIrs + 1,
              .ack = kIss + 1,
              .flags = flag::kAck,
              .options = option_timestamps(2, 0)});
    for (int i = 0; i < 30; ++i) p.user.queue(kStampedMss);
    p.stack.output(p.now);
    const uint32_t stamp = p.next().parsed.timestamps->value;
    p.egress.sent.clear();
    while (p.stack.counters().timeouts == 0) p.wait(milliseconds(50));
    p.inject({.seq = kIrs + 1,
              .ack = kIss + 1 + 2 * kStampedMss,
              .flags = static_cast<uint8_t>(flag::kAck | (marked ? flag::kEce : 0)),
              .options = option_timestamps(3, stamp)});
    const tcp::Inside c(*p.user.stream);
    EXPECT_EQ(p.stack.counters().eifel_undos, 1u);
    EXPECT_EQ(c.recovery.phase(), tcp::RecoveryPhase::Open);
    EXPECT_EQ(c.cc.ssthresh() == UINT32_MAX, !marked);
  }
}

}  // namespace
}  // namespace rnic::testing

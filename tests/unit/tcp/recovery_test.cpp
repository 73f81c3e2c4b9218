// RFC 6298, 5681, 6582, 6675 and 6937 step by step against a peer made of hand-written segments.
#include "raw_peer.hpp"
#include "unit/tcp/inside.hpp"

namespace rnic::testing {
namespace {

tcp::Config newreno(bool sack) {
  tcp::Config c = RawPeer::bare();
  c.sack = sack;
  c.congestion_control = CongestionControl::NewReno;
  return c;
}

/// The handshake takes 40 ms: no tail probe disturbs what happens at once.
struct Peer : RawPeer {
  explicit Peer(const tcp::Config& config, uint16_t window = 65535) : RawPeer(config) {
    acceptor.next.push_back(&user);
    inject({.seq = kIrs,
            .flags = flag::kSyn,
            .window = window,
            .options = option_mss(kMss) + option_sack_permitted()});
    next();
    wait(milliseconds(40));
    inject({.seq = kIrs + 1, .ack = kIss + 1, .flags = flag::kAck, .window = window});
    EXPECT_TRUE(user.is_established);
  }
  void send(uint32_t segments) {
    for (uint32_t i = 0; i < segments; ++i) user.queue(kMss);
    stack.output(now);
  }
  void ack(uint32_t segments, const std::vector<std::pair<uint32_t, uint32_t>>& sacked = {},
           uint16_t window = 65535) {
    std::vector<std::pair<uint32_t, uint32_t>> blocks;
    for (const auto& [from, to] : sacked) {
      blocks.emplace_back(kIss + 1 + from * kMss, kIss + 1 + to * kMss);
    }
    inject({.seq = kIrs + 1,
            .ack = kIss + 1 + segments * kMss,
            .flags = flag::kAck,
            .window = window,
            .options = blocks.empty() ? std::vector<uint8_t>{} : option_sack(blocks)});
  }
  /// Number of the first segment sent since; what else was sent is taken away.
  uint32_t first_sent() {
    const std::vector<uint32_t> numbers = sent();
    return numbers.empty() ? UINT32_MAX : numbers.front();
  }
  /// Numbers of the segments sent since.
  std::vector<uint32_t> sent() {
    std::vector<uint32_t> numbers;
    while (!silent()) numbers.push_back((next().seq - kIss - 1) / kMss);
    return numbers;
  }
  [[nodiscard]] tcp::Inside c() { return tcp::Inside(*user.stream); }
  void time_out() {
    const uint64_t before = stack.counters().timeouts;
    while (stack.counters().timeouts == before) {
      egress.sent.clear();
      wait(milliseconds(5));
    }
  }
};

using Numbers = std::vector<uint32_t>;

// TCP-9293-3.8.2-01: with the back-off of (5.5)
TEST(Rto, FollowsItsFormula_TCP_6298_2_01) {
  tcp::Config config;
  EXPECT_EQ(tcp::RtoEstimator(config).rto(), seconds(1));  // (2.1)
  config.rto_min = milliseconds(1);
  tcp::RtoEstimator e(config);
  base::Now now = base::from_nanos(0);
  e.sample(milliseconds(100), now);  // (2.2)
  EXPECT_EQ(e.srtt(), milliseconds(100));
  EXPECT_EQ(e.rttvar(), milliseconds(50));
  EXPECT_EQ(e.rto(), milliseconds(300));
  e.sample(milliseconds(200), now);  // (2.3): RTTVAR with the old SRTT
  EXPECT_EQ(e.rttvar(), microseconds(62'500));
  EXPECT_EQ(e.srtt(), microseconds(112'500));
  EXPECT_EQ(e.rto(), microseconds(362'500));
  for (int i = 0; i < 300; ++i) e.sample(milliseconds(50), now);
  EXPECT_NEAR(static_cast<double>(e.srtt().count()), 50e6, 1e3);
  EXPECT_GT(e.rto(), milliseconds(50));  // never below SRTT + G
  EXPECT_LT(e.rto(), milliseconds(51));
  for (const int64_t floor : {200, 1000}) {  // (2.4)
    config.rto_min = milliseconds(floor);
    tcp::RtoEstimator f(config);
    f.sample(milliseconds(10), now);
    EXPECT_EQ(f.rto(), milliseconds(floor));
    f.back_off();
    f.back_off();
    EXPECT_EQ(f.rto(), milliseconds(4 * floor));  // (5.5)
    for (int i = 0; i < 40; ++i) f.back_off();
    EXPECT_EQ(f.rto(), seconds(60));  // (2.5)
    f.sample(milliseconds(10), now);
    EXPECT_EQ(f.rto(), milliseconds(floor));
  }
}

// RFC 4015 s.3.1 step 11
TEST(Rto, ASpuriousTimeoutMakesItCautious) {
  tcp::Config config;
  config.rto_min = milliseconds(1);
  tcp::RtoEstimator e(config);
  for (int i = 0; i < 100; ++i) e.sample(milliseconds(100), base::from_nanos(0));
  e.save();
  e.adapt(milliseconds(400), base::from_nanos(0));
  EXPECT_EQ(e.srtt(), milliseconds(400));
  EXPECT_EQ(e.rttvar(), milliseconds(200));
  EXPECT_EQ(e.rto(), milliseconds(1200));
  e.save();
  e.adapt(milliseconds(50), base::from_nanos(0));  // a passing delay
  EXPECT_GE(e.srtt(), milliseconds(400));
}

TEST(Rto, OneTimerForTheEarliestSegment_TCP_6298_5_01) {
  Peer p(newreno(true));
  EXPECT_EQ(p.c().timers.at(tcp::Timer::Rto), base::kNever);
  p.send(3);  // (5.1)
  const base::Now first = p.c().timers.at(tcp::Timer::Rto);
  EXPECT_EQ(first, p.now + p.c().rto.rto());
  p.wait(milliseconds(10));
  p.send(1);
  EXPECT_EQ(p.c().timers.at(tcp::Timer::Rto), first);
  p.wait(milliseconds(10));
  p.ack(1);  // (5.3)
  EXPECT_EQ(p.c().timers.at(tcp::Timer::Rto), p.now + p.c().rto.rto());
  p.ack(4);  // (5.2)
  EXPECT_EQ(p.c().timers.at(tcp::Timer::Rto), base::kNever);
  p.send(2);
  p.time_out();
  EXPECT_EQ(p.sent(), (Numbers{4}));  // (5.4)
  EXPECT_EQ(p.c().rto.backoff(), 1u);
  EXPECT_NEAR(static_cast<double>((p.c().timers.at(tcp::Timer::Rto) - p.now).count()),
              static_cast<double>(p.c().rto.rto().count()), 6e6);
}

TEST(Rto, ALostSynMeansThreeSeconds_TCP_6298_5_02) {
  for (const bool lost : {true, false}) {
    RawPeer p(newreno(false));
    EXPECT_EQ(p.connect().flags, flag::kSyn);
    if (lost) {
      while (p.silent()) p.wait(milliseconds(100));
      p.expect({.flags = flag::kSyn});
    }
    p.inject({.seq = kIrs,
              .ack = kIss + 1,
              .flags = flag::kSyn | flag::kAck,
              .options = option_mss(kMss)});
    ASSERT_TRUE(p.user.is_established);
    const tcp::Inside c(*p.user.stream);
    EXPECT_EQ(c.rto.rto(), lost ? base::Duration(seconds(3)) : base::Duration(milliseconds(200)));
    EXPECT_EQ(c.cc.cwnd(), 10 * kMss);  // RFC 6928 s.2: one lost SYN is forgiven
  }
}

// Karn's rule (RFC 6298 s.3, s.5): the ACK of what was sent again measures nothing, and the
// back-off stays.
TEST(Rto, TheBackoffEndsWithAMeasurement_TCP_9293_3_8_1_01) {
  Peer p(newreno(true));
  p.send(2);
  p.time_out();
  p.time_out();
  EXPECT_EQ(p.c().rto.backoff(), 2u);
  const base::Duration srtt = p.c().rto.srtt();
  p.ack(1);
  EXPECT_EQ(p.c().rto.backoff(), 2u);
  EXPECT_EQ(p.c().rto.srtt(), srtt);
  p.ack(2);
  p.send(1);
  p.wait(milliseconds(40));
  p.ack(3);
  EXPECT_EQ(p.c().rto.backoff(), 0u);
  EXPECT_LT(p.c().rto.srtt(), 2 * srtt);
}

// Which of our two SYN-ACKs was acknowledged is not known, whatever made us send the second.
TEST(Rto, ASynAckThatWasSentAgainMeasuresNothing_TCP_9293_3_8_1_01) {
  for (const bool again : {false, true}) {
    RawPeer p(newreno(true));
    const Segment syn{.seq = kIrs, .flags = flag::kSyn, .options = option_mss(kMss)};
    p.acceptor.next.push_back(&p.user);
    p.inject(syn);
    p.wait(milliseconds(900));
    if (again) p.inject(syn);
    EXPECT_EQ(p.egress.sent.size(), again ? 2u : 1u);
    p.inject({.seq = kIrs + 1, .ack = kIss + 1, .flags = flag::kAck});
    ASSERT_TRUE(p.user.is_established);
    EXPECT_EQ(tcp::Inside(*p.user.stream).rto.measured(), !again);
  }
}

// RFC 8961 s.4 (3): octets that were sent since, and once, end the back-off, though the ACK covers
// others, too, and measures nothing.
TEST(Rto, TheBackoffEndsWithNewDataThatWentOver_TCP_9293_3_8_1_01) {
  Peer p(newreno(false));
  p.send(3);
  p.time_out();
  p.time_out();
  const base::Duration srtt = p.c().rto.srtt();
  p.ack(1);
  p.ack(2);
  p.egress.sent.clear();
  p.send(2);
  EXPECT_EQ(p.first_sent(), 3u);
  EXPECT_EQ(p.c().rto.backoff(), 2u);
  p.wait(milliseconds(1));
  p.ack(4);  // 2, which was sent again, and 3
  EXPECT_EQ(p.c().rto.backoff(), 0u);
  EXPECT_EQ(p.c().rto.srtt(), srtt);
}

// TCP-3042-01: two SACKed segments are reordering, three are loss.
TEST(Recovery, IsLostAndPipe_TCP_6675_4_01) {
  Peer p(newreno(true));
  p.send(30);
  p.wait(milliseconds(40));
  EXPECT_EQ(p.sent().size(), 10u);
  EXPECT_EQ(p.c().board.pipe(), 10u * kMss);
  p.ack(0, {{1, 2}});
  EXPECT_EQ(p.sent(), (Numbers{10}));  // limited transmit: one out, one in
  EXPECT_EQ(p.c().board.pipe(), 10u * kMss);
  p.ack(0, {{1, 3}});
  EXPECT_EQ(p.sent(), (Numbers{11}));
  EXPECT_EQ(p.c().board.lost_octets(), 0u);
  p.ack(0, {{1, 4}});
  EXPECT_EQ(p.stack.counters().fast_recoveries, 1u);
  EXPECT_EQ(p.sent(), (Numbers{0}));
  EXPECT_EQ(p.c().board.lost_octets(), kMss);
  EXPECT_EQ(p.c().board.retransmitted_octets(), kMss);
  // 12 in flight, 3 SACKed, 1 lost, 1 sent again.
  EXPECT_EQ(p.c().board.pipe(), 9u * kMss);
  EXPECT_EQ(p.c().recovery.point(), 12u * kMss);
}

// The lowest hole first, then the next; one reduction; it ends at RecoveryPoint.
TEST(Recovery, HolesInOrderAndOneReduction_TCP_6675_5_01) {
  Peer p(newreno(true));
  p.send(40);
  p.wait(milliseconds(40));
  p.sent();
  p.ack(0, {{1, 2}, {3, 5}});
  p.ack(0, {{1, 2}, {3, 10}});
  Numbers again = p.sent();
  ASSERT_FALSE(again.empty());
  const uint32_t ssthresh = p.c().cc.ssthresh();
  EXPECT_LE(ssthresh, 6 * kMss);
  const uint64_t point = p.c().recovery.point();
  for (uint32_t i = 11; again.empty() || again.back() != 2; ++i) {
    ASSERT_LT(i, 14u);
    p.ack(0, {{1, 2}, {3, i}});
    for (const uint32_t n : p.sent()) again.push_back(n);
  }
  const auto hole = [&](uint32_t n) { return std::find(again.begin(), again.end(), n); };
  EXPECT_LT(hole(0), hole(2));
  EXPECT_EQ(p.c().cc.ssthresh(), ssthresh);
  p.ack(2, {{3, 10}});
  EXPECT_EQ(p.c().recovery.phase(), tcp::RecoveryPhase::Recovery);
  p.ack(static_cast<uint32_t>(point / kMss));
  EXPECT_EQ(p.c().recovery.phase(), tcp::RecoveryPhase::Open);
  EXPECT_EQ(p.c().cc.ssthresh(), ssthresh);
  EXPECT_EQ(p.stack.counters().fast_recoveries, 1u);
}

// TCP-2018-5-01: the peer may have reneged.
TEST(Recovery, ATimeoutForgetsTheSacks_TCP_6675_5_1_01) {
  Peer p(newreno(true));
  p.send(10);
  p.ack(0, {{1, 6}});
  p.time_out();
  EXPECT_EQ(p.sent(), (Numbers{0}));
  EXPECT_EQ(p.c().recovery.phase(), tcp::RecoveryPhase::TimedOut);
  EXPECT_EQ(p.c().board.sacked_octets(), 0u);
  EXPECT_EQ(p.c().board.sacked_segments(), 0u);
  EXPECT_EQ(p.c().board.duplicate_acks(), 0u);
  EXPECT_EQ(p.c().board.hole(), 0u);
  EXPECT_EQ(p.c().recovery.point(), 10u * kMss);
  p.ack(1);
  EXPECT_EQ(p.sent(), (Numbers{1, 2}));  // what was SACKed before goes out again
  p.ack(2, {{3, 5}});                    // what is SACKed now does not
  for (const uint32_t n : p.sent()) EXPECT_TRUE(n < 3 || n >= 5) << n;
  p.ack(9);
  EXPECT_EQ(p.c().recovery.phase(), tcp::RecoveryPhase::Loss);
  p.ack(10);
  EXPECT_EQ(p.c().recovery.phase(), tcp::RecoveryPhase::Open);
}

// What is sent in recovery stays proportional to what was delivered.
TEST(Recovery, TheRateIsReducedInProportion_TCP_6937_01) {
  Peer p(newreno(true));
  p.send(60);
  p.wait(milliseconds(40));
  p.sent();
  for (uint32_t i = 2; i <= 4; ++i) p.ack(0, {{1, i}});
  const tcp::Recovery& r = p.c().recovery;
  ASSERT_EQ(r.phase(), tcp::RecoveryPhase::Recovery);
  const uint64_t ssthresh = p.c().cc.ssthresh();
  EXPECT_EQ(r.recover_fs(), 12u * kMss);
  EXPECT_EQ(ssthresh, 6u * kMss);
  uint64_t most = 0;
  uint64_t least = UINT64_MAX;
  for (uint32_t i = 5; i <= 12; ++i) {
    p.ack(0, {{1, i}});
    const uint64_t due = (r.prr_delivered() * ssthresh + r.recover_fs() - 1) / r.recover_fs();
    EXPECT_GE(r.prr_out() + kMss, due) << i;
    if (p.c().board.pipe() > ssthresh) {
      EXPECT_LE(r.prr_out(), due + kMss) << i;
    }
    most = std::max(most, p.c().board.pipe());
    least = std::min(least, p.c().board.pipe());
  }
  EXPECT_LT(most, 12 * kMss);  // never back up
  EXPECT_GE(least, ssthresh - kMss);
  p.ack(12);
  EXPECT_EQ(r.phase(), tcp::RecoveryPhase::Open);
  EXPECT_EQ(p.c().cc.cwnd(), ssthresh);
}

// When most of the window is lost, slow start rebuilds what is in flight (SSRB).
TEST(Recovery, AfterHeavyLossTheWindowIsRebuilt_TCP_6937_01) {
  Peer p(newreno(true));
  p.send(60);
  p.wait(milliseconds(40));
  p.sent();
  p.ack(0, {{9, 10}});
  p.wait(milliseconds(15));  // RACK: the eight before it are lost
  ASSERT_EQ(p.c().recovery.phase(), tcp::RecoveryPhase::Recovery);
  uint64_t out = p.sent().size();
  EXPECT_LE(out, 2u);
  for (uint32_t i = 1; i <= 5; ++i) {
    p.ack(i, {{9, 10}});
    const size_t now_sent = p.sent().size();
    EXPECT_GE(now_sent, 1u) << i;
    EXPECT_LE(now_sent, 2u) << i;  // delivered, and one more
    EXPECT_LE(p.c().board.pipe(), p.c().cc.ssthresh() + kMss) << i;
  }
}

// RFC 6582 s.3.2 step 2. Duplicates of what was sent again start nothing.
TEST(Recovery, DuplicatesBehindATimeoutAreNoLoss_TCP_5681_3_2_01) {
  tcp::Config config = newreno(false);
  config.frto = false;
  Peer p(config);
  p.send(10);
  p.time_out();
  p.ack(10);
  p.send(8);
  p.sent();
  for (int i = 0; i < 4; ++i) p.ack(10);  // the go-back-N copies arrive
  EXPECT_EQ(p.stack.counters().fast_recoveries, 0u);
  p.ack(11);
  for (int i = 0; i < 3; ++i) p.ack(11);  // beyond `recover`: a loss
  EXPECT_EQ(p.stack.counters().fast_recoveries, 1u);
}

// RFC 6582 s.4.1. A lost retransmission is seen where little was acknowledged.
TEST(Recovery, ARetransmissionLostBehindATimeoutIsSentAgain_TCP_5681_3_2_01) {
  for (const uint32_t covered : {1u, 6u}) {
    tcp::Config config = newreno(false);
    config.frto = false;
    Peer p(config);
    p.send(20);
    p.time_out();
    p.ack(1);
    p.ack(1 + covered);
    p.sent();
    for (int i = 0; i < 2; ++i) p.ack(1 + covered);
    p.sent();
    p.ack(1 + covered);
    const auto again = p.sent();
    const bool found = !again.empty() && again.front() == 1 + covered;
    EXPECT_EQ(found, covered == 1) << covered;
  }
}

// Each partial ACK takes out the next hole.
TEST(Recovery, PartialAcksWithoutSack_TCP_5681_3_2_01) {
  Peer p(newreno(false));
  p.send(10);
  p.sent();
  for (int i = 0; i < 3; ++i) p.ack(0);
  EXPECT_EQ(p.first_sent(), 0u);
  p.ack(3);
  EXPECT_EQ(p.first_sent(), 3u);
  EXPECT_EQ(p.c().recovery.phase(), tcp::RecoveryPhase::Recovery);
  p.ack(6);
  EXPECT_EQ(p.first_sent(), 6u);
  p.ack(10);
  EXPECT_EQ(p.c().recovery.phase(), tcp::RecoveryPhase::Open);
  EXPECT_EQ(p.stack.counters().retransmitted_segments, 3u);
}

TEST(Idle, TheWindowIsNotKeptWithoutUse_TCP_5681_4_1_01) {
  for (const bool restart : {true, false}) {
    tcp::Config config = newreno(true);
    config.idle_restart = restart;
    Peer p(config);
    p.send(40);
    for (uint32_t i = 1; i <= 40; ++i) p.ack(i);
    p.sent();
    const uint32_t grown = p.c().cc.cwnd();
    ASSERT_GT(grown, 20 * kMss);
    p.wait(milliseconds(150));  // shorter than the RTO
    p.send(4);                  // a burst, behind which another one may begin
    EXPECT_EQ(p.c().cc.cwnd(), grown);
    p.ack(44);
    p.sent();
    p.wait(seconds(2));
    p.send(40);
    EXPECT_EQ(p.sent().size(), restart ? 10u : std::min<size_t>(grown / kMss, 40));
    EXPECT_EQ(p.stack.counters().idle_restarts, restart ? 1u : 0u);
  }
}

// Without SACK, too: a segment for each of the first two duplicates, and the window is as it was.
TEST(Recovery, TheFirstTwoDuplicatesLetNewDataOut_TCP_3042_01) {
  Peer p(newreno(false));
  p.send(30);
  EXPECT_EQ(p.sent().size(), 10u);
  const uint32_t cwnd = p.c().cc.cwnd();
  p.ack(0);
  EXPECT_EQ(p.sent(), (Numbers{10}));
  p.ack(0);
  EXPECT_EQ(p.sent(), (Numbers{11}));
  EXPECT_EQ(p.c().cc.cwnd(), cwnd);
  p.ack(0);
  EXPECT_EQ(p.first_sent(), 0u);
}

// A quarter of the least RTT to wait for what was overtaken.
TEST(Rack, TheReorderingWindowBeginsWithAQuarterOfTheRtt_TCP_8985_5_02) {
  Peer p(newreno(true));
  p.send(10);
  p.wait(milliseconds(40));
  p.sent();
  ASSERT_EQ(p.c().rto.min_rtt(), milliseconds(40));
  p.ack(0, {{1, 2}});
  EXPECT_EQ(p.c().timers.at(tcp::Timer::Reorder) - p.now, milliseconds(10));
  p.wait(milliseconds(9));
  EXPECT_TRUE(p.silent());
  p.wait(milliseconds(2));
  EXPECT_EQ(p.first_sent(), 0u);
}

// A D-SACK in a round trip widens it by another quarter, up to SRTT.
TEST(Rack, DsacksWidenTheReorderingWindow_TCP_8985_5_02) {
  Peer p(newreno(true));
  for (uint32_t i = 0; i < 6; ++i) {
    const uint32_t at = 4 * i;
    p.send(4);
    p.wait(milliseconds(40));
    p.ack(at, {{at + 1, at + 2}});
    const base::Duration window = p.c().rto.min_rtt() / 4 * (i + 1);
    EXPECT_EQ(p.c().timers.at(tcp::Timer::Reorder) - p.now, std::min(window, p.c().rto.srtt()))
        << i;
    p.ack(at + 4, {{at, at + 1}});  // all is there, and the first one came twice
    EXPECT_EQ(p.c().recovery.phase(), tcp::RecoveryPhase::Open);
  }
}

// A widened window lasts for 16 recoveries (s.6.2 step 4).
TEST(Rack, AWidenedReorderingWindowEndsBehindRecoveries_TCP_8985_5_02) {
  // Each retransmission is answered before it can have arrived, which would teach RACK to wait.
  tcp::Config config = newreno(true);
  config.reordering_max = base::Duration(0);
  Peer p(config);
  p.send(4);
  p.wait(milliseconds(40));
  p.ack(0, {{1, 2}});
  p.ack(4, {{0, 1}});
  ASSERT_EQ(p.c().rack.window_multiplier(), 2u);
  for (uint32_t i = 1; i <= 16; ++i) {
    const uint32_t at = 2 + 2 * i;
    p.send(2);
    p.wait(milliseconds(40));
    p.ack(at, {{at + 1, at + 2}});
    p.wait(milliseconds(30));
    EXPECT_EQ(p.c().recovery.phase(), tcp::RecoveryPhase::Recovery);
    p.ack(at + 2);
    ASSERT_EQ(p.stack.counters().fast_recoveries, i);
    EXPECT_EQ(p.c().rack.window_multiplier(), i < 16 ? 2u : 1u) << i;
  }
}

// RFC 2883 s.4: the first block is a D-SACK where the second one holds it, edges included.
TEST(Rack, ADsackMayTouchTheEdgesOfItsBlock_TCP_8985_5_02) {
  using Blocks = std::vector<std::pair<uint32_t, uint32_t>>;
  for (const Blocks& blocks : {Blocks{{8, 9}, {5, 9}}, Blocks{{5, 6}, {5, 9}},
                               Blocks{{5, 9}, {5, 9}}, Blocks{{6, 7}, {5, 9}}}) {
    Peer p(newreno(true));
    p.send(10);
    p.ack(0, blocks);
    EXPECT_EQ(p.c().rack.window_multiplier(), 2u);
  }
  for (const Blocks& blocks : {Blocks{{8, 10}, {5, 9}}, Blocks{{4, 6}, {5, 9}}}) {
    Peer p(newreno(true));
    p.send(10);
    p.ack(0, blocks);
    EXPECT_EQ(p.c().rack.window_multiplier(), 1u);
  }
}

// No reordering was ever seen, and three have overtaken it: no waiting.
TEST(Rack, WithoutReorderingThreeSegmentsAreEnough_TCP_8985_5_02) {
  Peer p(newreno(true));
  p.send(10);
  p.wait(milliseconds(40));
  p.sent();
  p.ack(0, {{1, 4}});
  EXPECT_EQ(p.first_sent(), 0u);
  EXPECT_EQ(p.c().recovery.phase(), tcp::RecoveryPhase::Recovery);
  EXPECT_EQ(p.c().timers.at(tcp::Timer::Reorder), base::kNever);
}

TEST(TailProbe, TheTimerFollowsItsFormula_TCP_8985_7_01) {
  Peer p(newreno(true));
  ASSERT_EQ(p.c().rto.srtt(), milliseconds(40));
  const base::Duration delay = tcp::Config{}.tlp_max_ack_delay;
  p.send(1);  // its ACK may be delayed
  EXPECT_EQ(p.c().timers.at(tcp::Timer::Probe) - p.now, milliseconds(80) + delay);
  p.send(2);
  EXPECT_EQ(p.c().timers.at(tcp::Timer::Probe) - p.now, milliseconds(80));
  p.wait(milliseconds(40));
  p.ack(1);
  EXPECT_EQ(p.c().timers.at(tcp::Timer::Probe) - p.now, 2 * p.c().rto.srtt());
  p.ack(2);
  EXPECT_EQ(p.c().timers.at(tcp::Timer::Probe) - p.now, 2 * p.c().rto.srtt() + delay);
  p.ack(3);
  EXPECT_EQ(p.c().timers.at(tcp::Timer::Probe), base::kNever);
}

// Never later than the RTO, in whose place it goes.
TEST(TailProbe, IsNeverLaterThanTheRto_TCP_8985_7_01) {
  Peer p(newreno(true));
  for (uint32_t i = 1; i <= 60; ++i) {
    p.send(1);
    p.wait(milliseconds(110));
    p.ack(i);
  }
  p.sent();
  ASSERT_LT(p.c().rto.rto(), 2 * p.c().rto.srtt());
  p.send(1);
  p.sent();
  EXPECT_EQ(p.c().timers.at(tcp::Timer::Probe), p.c().timers.at(tcp::Timer::Rto));
  p.wait(p.c().rto.rto() + milliseconds(1));
  EXPECT_EQ(p.sent(), (Numbers{60}));
  EXPECT_EQ(p.stack.counters().timeouts, 0u);
  EXPECT_GT(p.c().timers.at(tcp::Timer::Rto), p.now);
}

// A second when nothing is known of the path.
TEST(TailProbe, WithoutAMeasurementItComesAfterASecond_TCP_8985_7_01) {
  RawPeer p(newreno(true));
  p.connect();
  while (p.silent()) p.wait(milliseconds(100));  // the SYN again: no measurement (Karn)
  p.next();
  p.inject({.seq = kIrs,
            .ack = kIss + 1,
            .flags = flag::kSyn | flag::kAck,
            .options = option_mss(kMss) + option_sack_permitted()});
  ASSERT_TRUE(p.user.is_established);
  p.send_record(kMss);
  EXPECT_EQ(tcp::Inside(*p.user.stream).timers.at(tcp::Timer::Probe) - p.now, seconds(1));
}

// A loss that SACK finds while a probe is out has its reduction with the recovery: the ACK of
// everything is not taken for one that the probe repaired.
TEST(TailProbe, ARecoveryAnswersForWhatWasProbed_TCP_8985_7_02) {
  Peer p(newreno(true));
  p.send(10);
  p.wait(milliseconds(40));
  p.ack(5);
  p.sent();
  p.wait(milliseconds(130));
  EXPECT_EQ(p.sent(), (Numbers{9}));
  ASSERT_TRUE(p.c().tail_probe.outstanding());
  p.send(1);
  p.ack(5, {{6, 9}});
  ASSERT_EQ(p.c().recovery.phase(), tcp::RecoveryPhase::Recovery);
  const uint32_t ssthresh = p.c().cc.ssthresh();
  p.ack(11);
  EXPECT_EQ(p.c().recovery.phase(), tcp::RecoveryPhase::Open);
  EXPECT_EQ(p.c().cc.ssthresh(), ssthresh);
  EXPECT_EQ(p.c().cc.cwnd(), ssthresh);
}

// What a probe repaired was a loss, and the window answers for it: with the first ACK beyond the
// probe. One whose original arrived as well changes nothing: a D-SACK tells, with the ACK or alone
// behind it, or a peer that sends none repeats its ACK.
TEST(TailProbe, ARepairedLossReducesTheWindow_TCP_8985_7_02) {
  enum class Told { No, WithTheAck, Behind, ByADuplicate };
  for (const Told told : {Told::No, Told::WithTheAck, Told::Behind, Told::ByADuplicate}) {
    const bool for_nothing = told != Told::No;
    Peer p(newreno(true));
    p.send(10);
    p.wait(milliseconds(40));
    p.ack(9);
    p.sent();
    const uint32_t cwnd = p.c().cc.cwnd();
    p.wait(milliseconds(130));
    EXPECT_EQ(p.sent(), (Numbers{9}));
    EXPECT_TRUE(p.c().tail_probe.outstanding());
    EXPECT_GT(p.c().timers.at(tcp::Timer::Rto), p.now + milliseconds(190));  // re-armed
    if (told == Told::WithTheAck) {
      p.ack(10, {{9, 10}});
    } else {
      p.ack(10);
      EXPECT_TRUE(p.c().tail_probe.outstanding());
    }
    if (told == Told::Behind) p.ack(10, {{9, 10}});
    if (told == Told::ByADuplicate) p.ack(10);
    EXPECT_EQ(p.c().tail_probe.outstanding(), !for_nothing);
    EXPECT_GE(p.c().cc.cwnd(), cwnd);
    p.send(1);
    p.ack(11);
    EXPECT_FALSE(p.c().tail_probe.outstanding());
    if (for_nothing) {
      EXPECT_GE(p.c().cc.cwnd(), cwnd);
    } else {
      EXPECT_LT(p.c().cc.cwnd(), cwnd);
      EXPECT_EQ(p.c().cc.cwnd(), p.c().cc.ssthresh());
    }
    EXPECT_EQ(p.stack.counters().timeouts, 0u);
  }
}

// New data goes rather than old.
TEST(TailProbe, NewDataGoesFirst_TCP_8985_7_02) {
  Peer p(newreno(true));
  p.send(12);
  EXPECT_EQ(p.sent().size(), 10u);  // cwnd
  p.wait(milliseconds(90));
  EXPECT_EQ(p.sent(), (Numbers{10}));
  EXPECT_EQ(p.c().tail_probe.state(), tcp::ProbeState::Plain);
  EXPECT_EQ(p.stack.counters().retransmitted_segments, 0u);
}

// RFC 9438 s.5.8, RFC 5681 s.3.1: what the peer's window, not ours, held back proves nothing.
TEST(Idle, AWindowLimitedByThePeerDoesNotGrow) {
  Peer p(newreno(true), 8 * kMss);
  p.send(200);
  for (uint32_t i = 1; i <= 150; ++i) p.ack(i, {}, 8 * kMss);
  EXPECT_LE(p.c().cc.cwnd(), 17 * kMss);
}

// As Linux has it (docs/decisions/0011): slow start goes on while cwnd is less than twice what was
// in flight at once, whichever ACK of the flight it is.
TEST(SlowStart, NineOfTenSegmentsOpenTheWindow) {
  for (const uint32_t flight : {4u, 5u, 6u, 9u}) {
    tcp::Config config = RawPeer::bare();
    config.congestion_control = CongestionControl::NewReno;
    RawPeer p(config);
    p.accept();
    const tcp::Inside c(*p.user.stream);
    uint32_t acked = 0;
    for (int round = 0; round < 3; ++round) {
      for (uint32_t i = 0; i < flight; ++i) p.user.queue(1460);
      p.stack.output(p.now);
      for (uint32_t i = 0; i < flight; ++i) {
        p.now += milliseconds(1);
        acked += 1460;
        p.inject({.seq = kIrs + 1, .ack = kIss + 1 + acked, .flags = flag::kAck});
      }
    }
    EXPECT_EQ(c.cc.cwnd(), std::max(10u, 2 * flight) * 1460) << flight;
  }
}

// RFC 9406 s.4.2: a round trip that rises begins conservative slow start, one that falls again ends
// it, and each is counted.
TEST(SlowStart, ConservativeSlowStartThatResumesIsCounted) {
  tcp::Config config = RawPeer::bare();
  config.congestion_control = CongestionControl::Cubic;
  config.hystart = true;
  config.initial_window_segments = 4;  // the peer's window holds 44
  Peer p(config);
  p.send(400);
  uint32_t acked = 0;
  for (const int round_trip : {40, 40, 70, 70, 40, 40, 40}) {
    p.wait(milliseconds(round_trip));
    for (size_t there = p.sent().size(); there != 0; --there) p.ack(++acked);
  }
  EXPECT_EQ(p.stack.counters().hystart_css, 1u);
  EXPECT_EQ(p.stack.counters().hystart_resumed, 1u);
  EXPECT_EQ(p.stack.counters().hystart_exits, 0u);
}

}  // namespace
}  // namespace rnic::testing

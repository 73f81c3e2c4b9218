// The algorithms by themselves: no segment, no clock.
#include "tcp/congestion.hpp"

#include <gtest/gtest.h>

#include <cmath>

namespace rnic::testing {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;
using tcp::AckSample;
using tcp::SlowStartEvent;

constexpr uint32_t kSmss = 1000;

tcp::Config config_of(CongestionControl kind) {
  tcp::Config config;
  config.congestion_control = kind;
  config.hystart = false;
  return config;
}

/// A connection in virtual time whose ACKs cover two segments each.
struct Flow {
  explicit Flow(const tcp::Config& c) : config(c), cc(config) {
    cc.set_smss(kSmss);
    cc.start(0);
  }
  ~Flow() { cc.validate(UINT64_MAX); }
  /// Loss at `cwnd` segments, and the end of the recovery.
  void lose_at(uint32_t cwnd) {
    cc.set_cwnd(uint64_t{cwnd} * kSmss);
    cc.on_loss(uint64_t{cwnd} * kSmss);
    cc.set_cwnd(cc.ssthresh());
  }
  void ack(uint64_t octets) {
    una += octets;
    cc.on_ack({.acked = octets,
               .snd_una = una,
               .snd_nxt = una + cc.cwnd(),
               .rtt = rtt,
               .srtt = rtt,
               .now = now});
  }
  void run(base::Duration time) {
    const base::Now end = now + time;
    while (now < end) {
      now += rtt * (2 * kSmss) / cc.cwnd();
      ack(uint64_t{2} * kSmss);
    }
  }
  [[nodiscard]] double segments() const { return static_cast<double>(cc.cwnd()) / kSmss; }

  tcp::Config config;
  tcp::Congestion cc;
  base::Now now = base::from_nanos(1'000'000'000);
  base::Duration rtt = milliseconds(100);
  uint64_t una = 0;
};

// C 0.4, beta 0.7, K and W_cubic.
TEST(Cubic, FollowsItsFunctionAfterALoss_TCP_9438_4_01) {
  Flow f(config_of(CongestionControl::Cubic));
  f.lose_at(100);
  EXPECT_EQ(f.cc.cwnd(), 70 * kSmss);
  EXPECT_EQ(f.cc.ssthresh(), 70 * kSmss);
  f.ack(kSmss);
  const double k = std::cbrt(30 / 0.4);
  EXPECT_NEAR(f.cc.cubic().k(), k, 1e-9);
  EXPECT_DOUBLE_EQ(f.cc.cubic().w_max(), 100);
  EXPECT_DOUBLE_EQ(f.cc.cubic().cwnd_prior(), 100);
  const base::Now epoch = f.now;
  // Concave up to W_max, flat around it, convex behind (s.4.4, s.4.5).
  for (int i = 0; i < 60; ++i) {
    f.run(milliseconds(100));
    const double t = static_cast<double>((f.now - epoch).count()) * 1e-9;
    EXPECT_NEAR(f.segments(), 0.4 * std::pow(t - k, 3) + 100, 2.5) << t;
  }
  EXPECT_GT(f.segments(), 101);
}

// The Reno-friendly region, with alpha 1 beyond cwnd_prior (s.4.3).
TEST(Cubic, IsNeverSlowerThanReno_TCP_9438_4_02) {
  Flow f(config_of(CongestionControl::Cubic));
  f.rtt = milliseconds(1);
  f.lose_at(40);
  f.ack(kSmss);
  const auto grown_in = [&](int round_trips) {
    const double before = f.segments();
    for (int i = 0; i < round_trips; ++i) f.run(f.rtt);
    return f.segments() - before;
  };
  EXPECT_NEAR(grown_in(20), 20 * 3 * 0.3 / 1.7, 1.5);
  while (f.segments() < 41) grown_in(1);
  EXPECT_NEAR(grown_in(20), 20, 2.0);
}

// At most half as much again a round trip (s.4.2).
TEST(Cubic, TheTargetIsBounded_TCP_9438_4_02) {
  Flow f(config_of(CongestionControl::Cubic));
  f.lose_at(20);
  f.ack(kSmss);
  f.now += seconds(100);  // the function is far away by now
  const uint32_t before = f.cc.cwnd();
  f.ack(before);
  EXPECT_LE(f.cc.cwnd(), before + before / 2 + 1);
  EXPECT_GE(f.cc.cwnd(), before + before / 2 - 1);
}

// t excludes what the application left unused.
TEST(Cubic, TimeStandsStillWhileTheApplicationIsTheLimit_TCP_9438_4_02) {
  Flow paused(config_of(CongestionControl::Cubic));
  Flow running(config_of(CongestionControl::Cubic));
  for (Flow* f : {&paused, &running}) {
    f->lose_at(50);
    f->run(seconds(1));
  }
  const uint32_t before = paused.cc.cwnd();
  ASSERT_EQ(before, running.cc.cwnd());
  paused.cc.on_unused_window(paused.now);
  for (Flow* f : {&paused, &running}) {
    f->now += seconds(60);
    f->ack(f->cc.cwnd());
  }
  EXPECT_LT(paused.cc.cwnd(), before + 3 * kSmss);
  EXPECT_GT(running.cc.cwnd(), before + before / 4);
}

// A stage that begins behind a loss has a clock of its own: what stood still before is not taken
// off it again.
TEST(Cubic, AStageBeginsUnpaused_TCP_9438_4_02) {
  Flow paused(config_of(CongestionControl::Cubic));
  Flow running(config_of(CongestionControl::Cubic));
  for (Flow* f : {&paused, &running}) {
    f->lose_at(50);
    f->run(seconds(1));
    if (f == &paused) f->cc.on_unused_window(f->now);
    f->now += seconds(10);
    f->lose_at(50);
    f->run(seconds(5));
  }
  EXPECT_EQ(paused.cc.cwnd(), running.cc.cwnd());
}

// An ACK that only counts is counted once, by gather() or by on_ack().
TEST(Congestion, GatheringIsNoOtherGrowth) {
  for (const CongestionControl kind : {CongestionControl::Cubic, CongestionControl::NewReno}) {
    Flow gathering(config_of(kind));
    Flow plain(config_of(kind));
    uint32_t gathered = 0;
    for (Flow* f : {&gathering, &plain}) {
      f->lose_at(50);
      for (int i = 0; i < 2000; ++i) {
        f->now += milliseconds(4);
        if (f == &gathering && f->cc.gather(kSmss)) {
          f->una += kSmss;
          ++gathered;
        } else {
          f->ack(kSmss);
        }
      }
    }
    EXPECT_GT(gathered, 1000u);
    EXPECT_EQ(gathering.cc.cwnd(), plain.cc.cwnd());
  }
}

// Fast convergence (s.4.7), and the knob.
TEST(Cubic, GivesWayWhenTheSaturationPointFalls_TCP_9438_4_03) {
  for (const bool enabled : {true, false}) {
    tcp::Config config = config_of(CongestionControl::Cubic);
    config.cubic_fast_convergence = enabled;
    Flow f(config);
    f.lose_at(100);
    EXPECT_DOUBLE_EQ(f.cc.cubic().w_max(), 100);
    f.lose_at(80);
    EXPECT_DOUBLE_EQ(f.cc.cubic().w_max(), enabled ? 80 * 1.7 / 2 : 80);
    f.lose_at(90);  // above the last W_max
    EXPECT_DOUBLE_EQ(f.cc.cubic().w_max(), 90);
  }
}

// After a time-out K is 0 and W_max the window at the start of the stage (s.4.8).
TEST(Cubic, ATimeoutStartsFromScratch_TCP_9438_4_03) {
  Flow f(config_of(CongestionControl::Cubic));
  f.lose_at(100);
  f.run(seconds(2));
  const uint32_t before = f.cc.cwnd();
  f.cc.on_timeout(before, true);
  EXPECT_EQ(f.cc.cwnd(), kSmss);
  EXPECT_NEAR(f.cc.ssthresh(), before * 0.7, 1);
  f.cc.on_timeout(before, false);  // the same segment again: ssthresh is held
  EXPECT_NEAR(f.cc.ssthresh(), before * 0.7, 1);
  while (f.cc.in_slow_start()) f.ack(kSmss);
  const double begin = f.segments();
  f.ack(kSmss);
  EXPECT_DOUBLE_EQ(f.cc.cubic().k(), 0);
  EXPECT_DOUBLE_EQ(f.cc.cubic().w_max(), begin);
}

// What was the maximum before a time-out is none any more; 0 says so (s.4.8).
TEST(Cubic, ATimeoutForgetsTheOldMaximum_TCP_9438_4_03) {
  Flow f(config_of(CongestionControl::Cubic));
  f.lose_at(100);
  EXPECT_DOUBLE_EQ(f.cc.cubic().w_max(), 100);
  f.cc.on_timeout(70 * kSmss, true);
  EXPECT_DOUBLE_EQ(f.cc.cubic().w_max(), 0);
}

// ECN-Echo reduces down to one segment; ssthresh is never less than two (s.4.6).
TEST(Cubic, MarksReduceDownToOneSegment_TCP_9438_4_01) {
  Flow f(config_of(CongestionControl::Cubic));
  f.cc.set_cwnd(10 * kSmss);
  f.cc.on_ecn();
  EXPECT_EQ(f.cc.cwnd(), 7 * kSmss);
  EXPECT_EQ(f.cc.ssthresh(), 7 * kSmss);
  for (int i = 0; i < 20; ++i) f.cc.on_ecn();
  EXPECT_EQ(f.cc.cwnd(), kSmss);
  EXPECT_EQ(f.cc.ssthresh(), 2 * kSmss);
}

// RFC 9438 s.4.9.2: everything is as before; later growth wins.
TEST(Cubic, AnUndoneReductionLeavesNoTrace) {
  Flow f(config_of(CongestionControl::Cubic));
  f.lose_at(100);
  f.run(seconds(2));
  const uint32_t cwnd = f.cc.cwnd();
  const double k = f.cc.cubic().k();
  const double w_est = f.cc.cubic().w_est();
  f.cc.save(cwnd);
  f.cc.on_loss(cwnd);
  f.cc.set_cwnd(f.cc.ssthresh());
  f.ack(kSmss);
  EXPECT_NE(f.cc.cubic().w_max(), 100);
  EXPECT_TRUE(f.cc.undo(cwnd - kSmss, kSmss));
  EXPECT_EQ(f.cc.cwnd(), cwnd);
  EXPECT_DOUBLE_EQ(f.cc.cubic().w_max(), 100);
  EXPECT_DOUBLE_EQ(f.cc.cubic().k(), k);
  EXPECT_DOUBLE_EQ(f.cc.cubic().w_est(), w_est);
  EXPECT_DOUBLE_EQ(f.cc.cubic().cwnd_prior(), 100);
  f.cc.save(cwnd);
  f.cc.on_loss(cwnd);
  f.cc.set_cwnd(2 * cwnd);
  EXPECT_FALSE(f.cc.undo(cwnd, kSmss));
  EXPECT_EQ(f.cc.cwnd(), 2 * cwnd);
}

// RFC 4015 s.3.4: the undo opens no more than an initial window at once; slow start does the rest.
TEST(Congestion, AnUndoIsNoBurst) {
  Flow f(config_of(CongestionControl::NewReno));
  f.cc.set_cwnd(200 * kSmss);
  f.cc.on_loss(200 * kSmss);
  f.cc.set_cwnd(100 * kSmss);
  f.cc.save(100 * kSmss);
  f.cc.on_timeout(100 * kSmss, true);
  EXPECT_TRUE(f.cc.undo(0, 100 * kSmss));
  EXPECT_EQ(f.cc.cwnd(), f.cc.initial_window());
  EXPECT_EQ(f.cc.ssthresh(), 100 * kSmss);
  EXPECT_TRUE(f.cc.in_slow_start());
}

struct Rounds {
  explicit Rounds(const tcp::Config& c) : config(c), cc(config) {
    cc.set_smss(kSmss);
    cc.start(0);
    cc.on_ack({.acked = 0, .snd_una = 0, .snd_nxt = nxt});  // the first round ends at nxt
  }
  /// One round trip of ten ACKs. \return the last event that was not None.
  SlowStartEvent round(base::Duration rtt) {
    SlowStartEvent last = SlowStartEvent::None;
    const uint64_t end = nxt;
    while (una < end) {
      const uint64_t acked = std::max<uint64_t>((end - una) / 10, kSmss);
      una += acked;
      nxt = std::max(nxt, una) + 2 * acked;
      const SlowStartEvent e = cc.on_ack(
          {.acked = acked, .snd_una = una, .snd_nxt = nxt, .rtt = rtt, .srtt = rtt, .now = now});
      if (e != SlowStartEvent::None) last = e;
    }
    return last;
  }
  tcp::Config config;
  tcp::Congestion cc;
  base::Now now{};
  uint64_t una = 0;
  uint64_t nxt = 40 * kSmss;
};

// HyStart++ (RFC 9406 s.4.2).
TEST(HyStart, ARisingRoundTripTimeEndsSlowStart_TCP_9438_4_03) {
  Rounds r(tcp::Config{});
  EXPECT_EQ(r.round(milliseconds(100)), SlowStartEvent::None);
  EXPECT_EQ(r.round(milliseconds(100)), SlowStartEvent::None);
  EXPECT_EQ(r.round(milliseconds(111)), SlowStartEvent::None);  // less than an eighth
  EXPECT_EQ(r.round(milliseconds(126)), SlowStartEvent::Conservative);
  for (int i = 0; i < 3; ++i) EXPECT_EQ(r.round(milliseconds(126)), SlowStartEvent::None) << i;
  EXPECT_EQ(r.cc.ssthresh(), UINT32_MAX);
  EXPECT_EQ(r.round(milliseconds(126)), SlowStartEvent::Left);  // the first, partial one counted
  EXPECT_EQ(r.cc.ssthresh(), r.cc.cwnd());
  EXPECT_FALSE(r.cc.in_slow_start());
  // RFC 9438 s.4.10: W_max is undefined; K is 0 and cwnd_prior the window.
  const double begin = static_cast<double>(r.cc.cwnd()) / kSmss;
  r.round(milliseconds(100));
  EXPECT_DOUBLE_EQ(r.cc.cubic().k(), 0);
  EXPECT_DOUBLE_EQ(r.cc.cubic().w_max(), begin);
  EXPECT_DOUBLE_EQ(r.cc.cubic().cwnd_prior(), begin);
}

// RFC 9406 s.4.2: a round is judged from its eighth sample on (N_RTT_SAMPLE), not before.
TEST(HyStart, EightSamplesAreEnough) {
  const tcp::Config config;
  tcp::HyStart h;
  uint64_t una = 0;
  const auto ack = [&](base::Duration rtt, uint64_t nxt) {
    return h.on_ack({.acked = 1, .snd_una = una++, .snd_nxt = nxt, .rtt = rtt}, config);
  };
  ack(base::Duration(-1), 10);  // the first round ends at 10, the second one at 100
  for (int i = 0; i < 10; ++i) EXPECT_EQ(ack(milliseconds(100), 100), SlowStartEvent::None);
  for (int i = 1; i < 8; ++i) EXPECT_EQ(ack(milliseconds(200), 200), SlowStartEvent::None) << i;
  EXPECT_EQ(ack(milliseconds(200), 200), SlowStartEvent::Conservative);
}

TEST(HyStart, GrowsByAQuarterInConservativeSlowStart) {
  Rounds r(tcp::Config{});
  r.round(milliseconds(100));
  r.round(milliseconds(100));
  ASSERT_EQ(r.round(milliseconds(130)), SlowStartEvent::Conservative);
  const uint32_t before = r.cc.cwnd();
  r.una += 4 * kSmss;
  r.cc.on_ack({.acked = 4 * kSmss, .snd_una = r.una, .snd_nxt = r.nxt});
  EXPECT_EQ(r.cc.cwnd(), before + kSmss);
}

TEST(HyStart, AFallingRoundTripTimeResumesSlowStart) {
  Rounds r(tcp::Config{});
  r.round(milliseconds(100));
  r.round(milliseconds(100));
  ASSERT_EQ(r.round(milliseconds(130)), SlowStartEvent::Conservative);
  EXPECT_EQ(r.round(milliseconds(101)), SlowStartEvent::Resumed);
  EXPECT_TRUE(r.cc.in_slow_start());
  EXPECT_EQ(r.round(milliseconds(101)), SlowStartEvent::None);
  EXPECT_EQ(r.round(milliseconds(130)), SlowStartEvent::Conservative);
}

TEST(HyStart, TheThresholdIsBoundedBothWays) {
  {
    Rounds r(tcp::Config{});  // MIN_RTT_THRESH 4 ms
    r.round(milliseconds(1));
    EXPECT_EQ(r.round(milliseconds(4)), SlowStartEvent::None);
    EXPECT_EQ(r.round(milliseconds(8)), SlowStartEvent::Conservative);
  }
  {
    Rounds r(tcp::Config{});  // MAX_RTT_THRESH 16 ms
    r.round(milliseconds(800));
    EXPECT_EQ(r.round(milliseconds(815)), SlowStartEvent::None);
    EXPECT_EQ(r.round(milliseconds(831)), SlowStartEvent::Conservative);
  }
}

TEST(HyStart, OnlyTheFirstSlowStartOfCubicWithTheKnobOn) {
  for (const int variant : {0, 1, 2}) {
    tcp::Config config;
    if (variant == 0) config.hystart = false;
    if (variant == 1) config.congestion_control = CongestionControl::NewReno;
    Rounds r(config);
    if (variant == 2) {  // s.4.3: ssthresh is known
      r.cc.on_timeout(1000 * kSmss, true);
      r.cc.undo(0, 0);
      r.cc.on_loss(4000 * kSmss);
      r.cc.set_cwnd(kSmss);
    }
    for (int ms = 100; ms < 1000 && r.cc.in_slow_start(); ms += 100) {
      EXPECT_EQ(r.round(milliseconds(ms)), SlowStartEvent::None) << variant;
    }
  }
}

TEST(NewReno, StrictSlowStartGrowsByASegmentAnAck_TCP_5681_3_1_01) {
  for (const uint32_t limit : {1u, 2u, 8u}) {
    tcp::Config config = config_of(CongestionControl::NewReno);
    config.growth_limit_segments = limit;
    Flow f(config);
    const uint32_t before = f.cc.cwnd();
    f.ack(5 * kSmss);
    EXPECT_EQ(f.cc.cwnd(), before + std::min(limit, 5u) * kSmss);
    f.ack(kSmss / 2);  // never more than what was acknowledged
    EXPECT_EQ(f.cc.cwnd(), before + std::min(limit, 5u) * kSmss + kSmss / 2);
  }
}

// TCP-9293-3.8.2-01: RFC 3465 s.2.3, a slow start that follows a time-out is strict, until
// ssthresh.
TEST(NewReno, SlowStartBehindATimeoutIsStrict_TCP_5681_3_1_01) {
  for (const bool paced : {false, true}) {
    Flow f(config_of(CongestionControl::NewReno));
    f.cc.set_paced(paced);
    f.cc.on_timeout(20 * kSmss, true);
    EXPECT_EQ(f.cc.cwnd(), kSmss);
    f.ack(9 * kSmss);
    EXPECT_EQ(f.cc.cwnd(), 2 * kSmss);
    while (f.cc.in_slow_start()) f.ack(kSmss);
    EXPECT_EQ(f.cc.cwnd(), 10 * kSmss);
    f.cc.set_cwnd(2 * kSmss);  // as behind an idle time
    f.ack(4 * kSmss);
    EXPECT_EQ(f.cc.cwnd(), 6 * kSmss);
  }
}

// TCP-9293-3.8.2-01: congestion avoidance grows by one SMSS a round trip.
TEST(NewReno, CongestionAvoidanceIsLinear_TCP_5681_3_1_01) {
  Flow f(config_of(CongestionControl::NewReno));
  f.lose_at(40);
  EXPECT_EQ(f.cc.cwnd(), 20 * kSmss);
  for (int round = 1; round <= 10; ++round) {
    for (uint32_t acked = 0, window = f.cc.cwnd(); acked < window; acked += kSmss) f.ack(kSmss);
    EXPECT_EQ(f.cc.cwnd(), (20 + static_cast<uint32_t>(round)) * kSmss);
  }
}

// RFC 3168 s.6.1.2: behind a mark cwnd is halved, and a whole window has to be acknowledged before
// it grows again: what was counted towards the growth of the old one is gone.
TEST(NewReno, AMarkForgetsWhatWasCountedTowardsGrowth) {
  Flow f(config_of(CongestionControl::NewReno));
  f.lose_at(40);
  f.ack(19 * kSmss);  // one segment is missing to a window
  f.cc.on_ecn();
  EXPECT_EQ(f.cc.cwnd(), 10 * kSmss);
  f.ack(9 * kSmss);
  EXPECT_EQ(f.cc.cwnd(), 10 * kSmss);
  f.ack(kSmss);
  EXPECT_EQ(f.cc.cwnd(), 11 * kSmss);
}

// RFC 6928 s.2
TEST(Congestion, InitialWindow_TCP_5681_3_1_01) {
  struct Case {
    uint32_t knob;
    uint32_t smss;
    uint32_t window;
  };
  for (const Case& c :
       {Case{10, 1460, 14600}, Case{10, 536, 5360}, Case{10, 8948, 17896}, Case{10, 2000, 14600},
        Case{0, 1095, 4380}, Case{0, 1460, 4380}, Case{0, 2191, 4382}, Case{4, 1000, 4000}}) {
    tcp::Config config;
    config.initial_window_segments = c.knob;
    tcp::Congestion cc(config);
    cc.set_smss(c.smss);
    cc.start(0);
    EXPECT_EQ(cc.cwnd(), c.window) << c.knob << " x " << c.smss;
    cc.start(1);  // one lost SYN is forgiven (RFC 6928 s.2)
    EXPECT_EQ(cc.cwnd(), c.window);
    cc.start(2);
    EXPECT_EQ(cc.cwnd(), c.smss);
  }
}

TEST(NewReno, ReductionsAreBoundedByTwoSegments_TCP_5681_3_1_02) {
  Flow f(config_of(CongestionControl::NewReno));
  f.cc.on_timeout(20 * kSmss, true);
  EXPECT_EQ(f.cc.ssthresh(), 10 * kSmss);
  EXPECT_EQ(f.cc.cwnd(), kSmss);
  f.cc.on_timeout(kSmss, true);
  EXPECT_EQ(f.cc.ssthresh(), 2 * kSmss);
}

struct Window {
  tcp::Dctcp dctcp;
  uint64_t una = 0;
  uint64_t nxt = 0;
  /// One observation window of 100 segments, `marked` of them.
  void observe(int marked) {
    nxt = una + 100 * kSmss;
    for (int i = 0; i < 100; ++i) {
      una += kSmss;
      dctcp.on_ack({.acked = kSmss, .snd_una = una, .snd_nxt = nxt + kSmss}, i < marked, 4);
    }
  }
};

TEST(Dctcp, AlphaFollowsTheShareOfMarks_TCP_8257_3_3_01) {
  Window w;
  EXPECT_EQ(w.dctcp.alpha(), tcp::Dctcp::kScale);
  for (int i = 0; i < 200; ++i) w.observe(100);
  EXPECT_EQ(w.dctcp.alpha(), tcp::Dctcp::kScale);  // clamped
  for (int i = 0; i < 200; ++i) w.observe(25);
  EXPECT_NEAR(w.dctcp.alpha(), tcp::Dctcp::kScale / 4, tcp::Dctcp::kScale / 50);
  int windows = 0;
  while (w.dctcp.alpha() != 0 && ++windows < 1000) w.observe(0);
  EXPECT_EQ(w.dctcp.alpha(), 0u);  // s.4.2: it comes to rest
  w.observe(100);
  w.observe(100);
  EXPECT_GT(w.dctcp.alpha(), 0u);
}

// g = 1/16 of the difference, once a window.
TEST(Dctcp, OneWindowCountsForASixteenth_TCP_8257_3_3_01) {
  tcp::Dctcp d;
  d.on_ack({.acked = kSmss, .snd_una = kSmss, .snd_nxt = 11 * kSmss}, false, 4);
  EXPECT_EQ(d.alpha(), tcp::Dctcp::kScale * 15 / 16);
  d.on_ack({.acked = kSmss, .snd_una = 2 * kSmss, .snd_nxt = 12 * kSmss}, true, 4);
  EXPECT_EQ(d.alpha(), tcp::Dctcp::kScale * 15 / 16);  // inside the window
  d.on_ack({.acked = 9 * kSmss, .snd_una = 11 * kSmss, .snd_nxt = 21 * kSmss}, false, 4);
  EXPECT_EQ(d.alpha(), tcp::Dctcp::kScale * 15 / 16);  // its end, but not beyond (step 4)
  d.on_ack({.acked = kSmss, .snd_una = 12 * kSmss, .snd_nxt = 22 * kSmss}, false, 4);
  const uint32_t before = tcp::Dctcp::kScale * 15 / 16;
  EXPECT_EQ(d.alpha(), before + (tcp::Dctcp::kScale / 11 >> 4) - (before >> 4));
}

TEST(Dctcp, ReducesByHalfOfAlphaAndByHalfOnLoss_TCP_8257_3_3_01) {
  Flow f(config_of(CongestionControl::Dctcp));
  f.cc.set_cwnd(100 * kSmss);
  f.cc.on_ecn();
  EXPECT_EQ(f.cc.cwnd(), 50 * kSmss);  // Alpha = 1
  AckSample s{.acked = kSmss, .snd_una = kSmss, .snd_nxt = kSmss};
  for (int i = 0; i < 11; ++i) {
    f.cc.count_marks(s, false);
    s.snd_una = s.snd_nxt += kSmss;
  }
  const uint32_t alpha = f.cc.dctcp().alpha();
  EXPECT_NEAR(alpha, 65536 * std::pow(15.0 / 16, 11), 32);
  f.cc.set_cwnd(100 * kSmss);
  f.cc.on_ecn();
  EXPECT_EQ(f.cc.cwnd(), 100 * kSmss - uint64_t{100 * kSmss} * alpha / 131072);
  EXPECT_EQ(f.cc.ssthresh(), f.cc.cwnd());
  f.cc.on_loss(100 * kSmss);  // s.3.5
  EXPECT_EQ(f.cc.ssthresh(), 50 * kSmss);
  f.cc.on_timeout(100 * kSmss, false);
  EXPECT_EQ(f.cc.cwnd(), kSmss);
}

TEST(Congestion, AnotherAlgorithmTakesOverTheWindow_TCP_CC_01) {
  Flow f(config_of(CongestionControl::Cubic));
  f.lose_at(100);
  f.run(seconds(1));
  for (const auto kind : {CongestionControl::Dctcp, CongestionControl::NewReno,
                          CongestionControl::Cubic, CongestionControl::Dctcp}) {
    const uint32_t cwnd = f.cc.cwnd();
    const uint32_t ssthresh = f.cc.ssthresh();
    f.cc.select(kind);
    EXPECT_EQ(f.cc.kind(), kind);
    EXPECT_EQ(f.cc.cwnd(), cwnd);
    EXPECT_EQ(f.cc.ssthresh(), ssthresh);
    f.run(seconds(1));
    EXPECT_GT(f.cc.cwnd(), cwnd);
    EXPECT_LT(f.cc.cwnd(), cwnd + 15 * kSmss);
    f.cc.set_cwnd(50 * kSmss);
    f.cc.on_loss(50 * kSmss);
    EXPECT_EQ(f.cc.ssthresh(), (kind == CongestionControl::Cubic ? 35 : 25) * kSmss);
    f.cc.set_cwnd(f.cc.ssthresh());
  }
}

TEST(Congestion, IdlenessFallsBackToTheRestartWindow_TCP_5681_4_1_01) {
  Flow f(config_of(CongestionControl::NewReno));
  f.lose_at(100);
  f.cc.on_idle(f.now);
  EXPECT_EQ(f.cc.cwnd(), 10 * kSmss);
  EXPECT_EQ(f.cc.ssthresh(), 50 * kSmss);  // what was learnt stays
  f.cc.set_cwnd(3 * kSmss);
  f.cc.on_idle(f.now);  // never up
  EXPECT_EQ(f.cc.cwnd(), 3 * kSmss);
}

// RFC 7661 s.4.4: three quarters of a window that has carried so much are remembered, so that slow
// start comes back to it; a path of which nothing was learnt stays one.
TEST(Congestion, AnIdleConnectionRemembersTheWindowItHad_TCP_5681_4_1_01) {
  for (const CongestionControl kind : {CongestionControl::NewReno, CongestionControl::Cubic}) {
    Flow fresh(config_of(kind));
    fresh.cc.set_cwnd(100 * kSmss);
    fresh.cc.on_idle(fresh.now);
    EXPECT_EQ(fresh.cc.cwnd(), 10 * kSmss);
    EXPECT_EQ(fresh.cc.ssthresh(), UINT32_MAX);
    Flow grown(config_of(kind));
    grown.lose_at(20);
    grown.cc.set_cwnd(100 * kSmss);
    grown.cc.on_idle(grown.now);
    EXPECT_EQ(grown.cc.cwnd(), 10 * kSmss);
    EXPECT_EQ(grown.cc.ssthresh(), 75 * kSmss);
    grown.cc.on_idle(grown.now);  // a second pause forgets nothing
    EXPECT_EQ(grown.cc.ssthresh(), 75 * kSmss);
  }
}

// Another algorithm begins anew. What was counted towards the next segment of NewReno's growth
// before is forgotten, also where DCTCP goes on by the same rule.
TEST(Congestion, AChangeForgetsWhatWasCountedTowardsGrowth_TCP_CC_01) {
  Flow f(config_of(CongestionControl::NewReno));
  f.lose_at(40);
  ASSERT_EQ(f.cc.cwnd(), 20 * kSmss);
  f.ack(uint64_t{19} * kSmss);
  EXPECT_EQ(f.cc.cwnd(), 20 * kSmss);
  f.cc.select(CongestionControl::Dctcp);
  f.ack(uint64_t{19} * kSmss);
  EXPECT_EQ(f.cc.cwnd(), 20 * kSmss);
  f.ack(uint64_t{1} * kSmss);
  EXPECT_EQ(f.cc.cwnd(), 21 * kSmss);
}

// RFC 5681 s.3.1: slow start follows every time-out, also a further one of the same octets, which
// leaves ssthresh as it was; what was counted towards growth before does not count behind it.
TEST(Congestion, ATimeoutForgetsWhatWasCountedTowardsGrowth_TCP_CC_01) {
  Flow f(config_of(CongestionControl::NewReno));
  f.lose_at(40);
  f.ack(uint64_t{19} * kSmss);
  f.cc.on_timeout(uint64_t{20} * kSmss, false);
  EXPECT_EQ(f.cc.cwnd(), kSmss);
  while (f.cc.cwnd() < 20 * kSmss) f.ack(kSmss);
  f.ack(uint64_t{19} * kSmss);
  EXPECT_EQ(f.cc.cwnd(), 20 * kSmss);
  f.ack(uint64_t{1} * kSmss);
  EXPECT_EQ(f.cc.cwnd(), 21 * kSmss);
}

}  // namespace
}  // namespace rnic::testing

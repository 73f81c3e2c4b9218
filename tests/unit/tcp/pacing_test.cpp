// Release times in virtual time.
#include "pair.hpp"
#include "raw_peer.hpp"
#include "unit/tcp/inside.hpp"

namespace rnic::testing {
namespace {

constexpr base::Duration kTick{1 << base::TimerWheel::kTickShift};

tcp::Config paced() {
  tcp::Config c = RawPeer::bare();
  c.pacing = true;
  c.congestion_control = CongestionControl::NewReno;
  return c;
}

/// The handshake takes 100 ms: SRTT.
struct PacedPeer : RawPeer {
  explicit PacedPeer(const tcp::Config& config = paced()) : RawPeer(config) {
    acceptor.next.push_back(&user);
    inject({.seq = kIrs, .flags = flag::kSyn, .options = option_mss(kMss)});
    next();
    wait(milliseconds(100));
    inject({.seq = kIrs + 1, .ack = kIss + 1, .flags = flag::kAck});
    EXPECT_TRUE(user.is_established);
  }
  /// The time between consecutive segments, for `time` from now on.
  std::vector<base::Duration> gaps(base::Duration time) {
    std::vector<base::Duration> out;
    base::Now last = now;
    const base::Now end = now + time;
    while (now < end) {
      const size_t before = egress.sent.size();
      wait(microseconds(20));
      if (egress.sent.size() == before) continue;
      EXPECT_EQ(egress.sent.size(), before + 1);
      out.push_back(now - last);
      last = now;
    }
    return out;
  }
};

TEST(Pacing, SlowStartSpreadsAWindowOverHalfARoundTrip) {
  PacedPeer p;
  for (int i = 0; i < 10; ++i) p.user.queue(kMss);
  p.stack.output(p.now);
  ASSERT_EQ(p.egress.sent.size(), 1u);
  // 200 % of 10 segments in 100 ms: one each 5 ms. The timer's lateness does not add up.
  const base::Now start = p.now;
  const auto gaps = p.gaps(milliseconds(60));
  ASSERT_EQ(gaps.size(), 9u);
  base::Duration sum{0};
  for (size_t i = 0; i < gaps.size(); ++i) {
    sum += gaps[i];
    EXPECT_GE(sum, milliseconds(5) * (i + 1));
    EXPECT_LE(sum, milliseconds(5) * (i + 1) + 2 * kTick);
  }
  EXPECT_GE(p.stack.counters().pacing_waits, 9u);
  EXPECT_LE(p.stack.counters().pacing_waits, 10u);
  EXPECT_LE(p.now - start, milliseconds(61));
}

TEST(Pacing, CongestionAvoidanceIsSlower) {
  tcp::Config config = paced();
  config.pacing_percent = 125;
  PacedPeer p(config);
  const tcp::Inside c(*p.user.stream);
  c.cc.on_loss(20 * kMss);  // ssthresh: 10 segments
  ASSERT_FALSE(c.cc.in_slow_start());
  for (int i = 0; i < 10; ++i) p.user.queue(kMss);
  p.stack.output(p.now);
  const auto gaps = p.gaps(milliseconds(90));
  ASSERT_EQ(gaps.size(), 9u);
  for (const base::Duration gap : gaps) EXPECT_NEAR(gap.count(), 8e6, 2.0 * kTick.count());
}

TEST(Pacing, IsOffByDefault) {
  tcp::Config config = paced();
  config.pacing = tcp::Config{}.pacing;
  PacedPeer p(config);
  for (int i = 0; i < 10; ++i) p.user.queue(kMss);
  p.stack.output(p.now);
  EXPECT_EQ(p.egress.sent.size(), 10u);
  EXPECT_EQ(p.stack.counters().pacing_waits, 0u);
}

// After a pause nothing is owed: the pace begins anew.
TEST(Pacing, APauseBuysNoBurst) {
  PacedPeer p;
  p.send_record(kMss);
  p.inject({.seq = kIrs + 1, .ack = kIss + 1 + kMss, .flags = flag::kAck});
  p.wait(milliseconds(150));
  p.egress.sent.clear();
  for (int i = 0; i < 3; ++i) p.user.queue(kMss);
  p.stack.output(p.now);
  EXPECT_EQ(p.egress.sent.size(), 1u);
  EXPECT_EQ(p.gaps(milliseconds(30)).size(), 2u);
}

// A whole transfer, with loss: paced, complete, and the window is used.
TEST(Pacing, ATransferUnderLossIsCompleteAndNotSlower) {
  base::Duration took[2];
  for (const bool on : {false, true}) {
    tcp::Config config;
    config.pacing = on;
    Pair p(config, config);
    p.link.delay = milliseconds(5);
    ASSERT_TRUE(p.open());
    uint32_t n = 0;
    p.link.hook = [&](const LinkFrame& f) {
      return Fate{.drop = f.from_a && f.payload() != 0 && ++n % 500 == 0};
    };
    for (int i = 0; i < 5000; ++i) p.a.queue(1448);
    const base::Now start = p.link.now;
    ASSERT_TRUE(p.drain());
    took[on ? 1 : 0] = p.link.now - start;
    EXPECT_TRUE(p.b.clean());
    EXPECT_EQ(p.link.a.counters().timeouts, 0u);
    EXPECT_EQ(p.link.a.counters().pacing_waits > 100, on);
    ASSERT_TRUE(p.close());
    EXPECT_TRUE(p.everything_returned());
  }
  EXPECT_LT(took[1], took[0] * 3 / 2);
}

}  // namespace
}  // namespace rnic::testing

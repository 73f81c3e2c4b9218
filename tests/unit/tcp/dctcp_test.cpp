// DCTCP between segments and stacks (RFC 8257); its arithmetic is in congestion_test.cpp.
#include "base/prng.hpp"
#include "pair.hpp"
#include "raw_peer.hpp"
#include "unit/tcp/inside.hpp"

namespace rnic::testing {
namespace {

tcp::Config dctcp() {
  tcp::Config c = RawPeer::bare();
  c.congestion_control = CongestionControl::Dctcp;
  return c;
}

struct DctcpPeer : RawPeer {
  explicit DctcpPeer(const tcp::Config& config = dctcp()) : RawPeer(config) {}
  Segment open(uint8_t syn_ecn = 0) {
    acceptor.next.push_back(&user);
    inject({.seq = kIrs, .flags = flag::kSyn | kBoth, .options = option_mss(1460), .ecn = syn_ecn});
    const Segment syn_ack = next();
    inject({.seq = kIrs + 1, .ack = kIss + 1, .flags = flag::kAck});
    EXPECT_TRUE(user.is_established);
    return syn_ack;
  }
  void give(uint8_t ecn, uint8_t bits = 0) {
    inject({.seq = kIrs + 1 + received,
            .ack = kIss + 1,
            .flags = static_cast<uint8_t>(flag::kAck | bits),
            .payload = 100,
            .ecn = ecn});
    received += 100;
  }
  /// What the stack acknowledged next, and how.
  void expect_ack(uint32_t octets, bool ece, Caller caller = {}) {
    const uint8_t flags = flag::kAck | (ece ? flag::kEce : 0);
    const Segment s = expect({.flags = flags, .ack = kIrs + 1 + octets, .ecn = 0}, caller);
    EXPECT_GE(s.ack + s.window, edge);  // the window never shrinks
    edge = s.ack + s.window;
  }
  uint32_t received = 0;
  uint32_t edge = 0;
};

// ECE is DCTCP.CE, and a change is told at once.
TEST(DctcpReceiver, EceFollowsTheMarks_TCP_8257_3_2_01) {
  DctcpPeer p;
  p.open();
  p.give(kEct0);
  EXPECT_TRUE(p.silent());  // delayed
  p.give(kCe);
  p.expect_ack(100, false);  // what came before, as it was marked
  p.expect_ack(200, true);   // and the change itself
  EXPECT_TRUE(p.silent());
  p.give(kCe);
  EXPECT_TRUE(p.silent());  // no change: delayed as ever
  p.give(kEct0);
  p.expect_ack(300, true);
  p.expect_ack(400, false);
  p.give(kCe);
  p.expect_ack(500, true);  // nothing was owed
  EXPECT_TRUE(p.silent());
  EXPECT_EQ(p.stack.counters().ce_change_acks, 2u);
  EXPECT_EQ(p.stack.counters().acks_out, 5u) << "these two and three others";
}

// CWR does not stop it; only an unmarked segment does.
TEST(DctcpReceiver, CwrIsNotTheEnd_TCP_8257_3_2_01) {
  DctcpPeer p;
  p.open();
  p.give(kCe);
  p.expect_ack(100, true);
  p.give(kCe, flag::kCwr | flag::kPsh);
  p.expect_ack(200, true);
  p.give(kEct0);
  p.expect_ack(300, false);
}

// One burst, several changes: each run of equal marks has its own ACK.
TEST(DctcpReceiver, ABurstIsReportedRunByRun_TCP_8257_3_2_01) {
  DctcpPeer p;
  p.open();
  p.hold_output = true;
  for (const uint8_t ecn : {kEct0, kEct0, kCe, kCe, kCe, kEct0, kCe}) p.give(ecn);
  p.stack.output(p.now);
  p.expect_ack(200, false);
  p.expect_ack(500, true);
  p.expect_ack(600, false);
  p.expect_ack(700, true);
  EXPECT_TRUE(p.silent());
}

// More changes than are remembered: the last state is still right.
TEST(DctcpReceiver, TooManyChangesAreMerged) {
  DctcpPeer p;
  p.open();
  p.hold_output = true;
  for (int i = 0; i < 20; ++i) p.give(i % 2 == 0 ? kEct0 : kCe);
  p.stack.output(p.now);
  EXPECT_GT(p.stack.counters().ce_changes_merged, 0u);
  EXPECT_LT(p.stack.counters().ce_changes_merged, 19u) << "there were no more changes";
  EXPECT_LE(p.egress.sent.size(), 5u);
  bool last = true;
  while (!p.silent()) {
    const Segment s = p.next();
    const bool ece = (s.flags & flag::kEce) != 0;
    EXPECT_NE(ece, last);
    last = ece;
    if (p.silent()) {
      EXPECT_EQ(s.ack, kIrs + 1 + 2000);
      EXPECT_TRUE(ece);
    }
  }
}

TEST(Dctcp, SynSynAckAndRstAreCapable_TCP_8257_3_6_01) {
  {
    DctcpPeer p;
    // DCTCP asks although the knob says accept.
    compare(p.connect(), {.flags = flag::kSyn | kBoth, .ecn = kEct0});
  }
  DctcpPeer p;
  // CE on a SYN is ignored.
  compare(p.open(kCe), {.flags = flag::kSyn | flag::kAck | flag::kEce, .ecn = kEct0});
  EXPECT_EQ(p.stack.counters().ce_in, 0u);
  p.give(kEct0, flag::kPsh);
  p.expect_ack(100, false);
  p.user.stream->abort();
  p.stack.output(p.now);
  p.expect({.flags = flag::kRst | flag::kAck, .ecn = kEct0});
}

TEST(Dctcp, WithoutEcnItIsNewReno) {
  tcp::Config config = dctcp();
  config.ecn = Ecn::Off;
  DctcpPeer p(config);
  compare(p.connect(), {.flags = flag::kSyn, .ecn = 0});
}

// RFC 8257 s.4.1
TEST(Dctcp, TheKnobMakesControlSegmentsCapable) {
  for (const bool on : {false, true}) {
    tcp::Config config = dctcp();
    config.dctcp_ect_on_control = on;
    DctcpPeer p(config);
    p.open();
    p.give(kEct0, flag::kPsh);
    p.expect({.ecn = on ? kEct0 : uint8_t{0}});  // a pure ACK
    p.send_record(100);
    p.expect({.flags = kPshAck, .payload = 100, .ecn = kEct0});
    while (p.silent()) p.wait(milliseconds(50));
    p.expect({.flags = kPshAck, .payload = 100, .ecn = on ? kEct0 : uint8_t{0}});  // sent again
  }
}

tcp::Config capable(CongestionControl kind) {
  tcp::Config c;
  c.ecn = Ecn::Offer;
  c.congestion_control = kind;
  return c;
}

// A threshold queue marks; the window settles around it and nothing is lost.
TEST(Dctcp, SettlesAtAMarkingThreshold_TCP_8257_3_3_01) {
  for (const auto kind : {CongestionControl::Dctcp, CongestionControl::NewReno}) {
    Pair p(capable(kind), capable(kind));
    ASSERT_TRUE(p.open());
    const tcp::Inside sender(*p.a.stream);
    p.link.hook = [&](const LinkFrame& f) {
      return Fate{.mark_ce = f.from_a && f.payload() != 0 && sender.tcb.flight() > 100'000};
    };
    for (int i = 0; i < 6000; ++i) p.a.queue(1448);
    uint32_t least = UINT32_MAX;
    ASSERT_TRUE(p.link.run_until(
        [&] {
          if (p.a.released_to > 4'000'000 && p.a.released_to < 8'000'000) {
            least = std::min(least, sender.cc.cwnd());
          }
          return p.a.to_send.empty() && p.a.released_to == p.a.pulled;
        },
        seconds(60)));
    EXPECT_TRUE(p.b.clean());
    EXPECT_EQ(p.link.a.counters().retransmitted_segments, 0u);
    EXPECT_GT(p.link.a.counters().ecn_reductions, 2u);
    EXPECT_GT(p.link.b.counters().ce_in, 5u);
    if (kind == CongestionControl::Dctcp) {
      EXPECT_LT(sender.cc.dctcp().alpha(), tcp::Dctcp::kScale / 2);
      EXPECT_GT(least, 70'000u);  // gentle: a mark does not halve
    } else {
      EXPECT_LT(least, 70'000u);
    }
  }
}

// Each connection has its own, from its first SYN on and changed at any time.
TEST(Congestion, IsAnOptionOfTheConnection_TCP_CC_01) {
  RawPeer p;
  for (const auto kind :
       {CongestionControl::NewReno, CongestionControl::Cubic, CongestionControl::Dctcp}) {
    RecordUser user{11, 22};
    tcp::ConnectionOptions options = p.stack.default_options();
    options.congestion_control = kind;
    options.pacing = true;
    const bool offers = kind != CongestionControl::Cubic;
    if (kind == CongestionControl::NewReno) options.ecn = Ecn::Offer;
    auto stream = p.stack.connect({RawPeer::kUs, 0}, {RawPeer::kPeer, RawPeer::kPeerPort}, user,
                                  options, p.now);
    ASSERT_TRUE(stream.has_value());
    const tcp::Inside c(**stream);
    EXPECT_EQ(c.cc.kind(), kind);
    EXPECT_TRUE(c.pacing.on());
    p.stack.output(p.now);
    p.expect({.flags = flag::kSyn | (offers ? kBoth : 0),
              .ecn = kind == CongestionControl::Dctcp ? kEct0 : 0});
    options.congestion_control = CongestionControl::NewReno;
    options.pacing = false;
    ASSERT_TRUE(p.stack.set_options(**stream, options, p.now));
    EXPECT_EQ(c.cc.kind(), CongestionControl::NewReno);
    EXPECT_FALSE(c.pacing.on());
    (*stream)->abort();
    p.stack.output(p.now);
  }
}

// Every change of algorithm, at any time, under loss and marks.
TEST(Congestion, SwitchingUnderLossAndMarks_TCP_CC_01) {
  constexpr CongestionControl kKinds[] = {CongestionControl::NewReno, CongestionControl::Cubic,
                                          CongestionControl::Dctcp};
  for (uint64_t seed = 1; seed <= 12; ++seed) {
    Pair p(capable(kKinds[seed % 3]), capable(kKinds[seed / 3 % 3]));
    ASSERT_TRUE(p.open());
    base::Prng random(seed);
    p.link.hook = [&](const LinkFrame&) {
      return Fate{.drop = random.chance(0.01), .mark_ce = random.chance(0.05)};
    };
    for (int i = 0; i < 3000; ++i) {
      p.a.queue(1448);
      p.b.queue(700);
    }
    int switches = 0;
    base::Now next = p.link.now;
    ASSERT_TRUE(p.link.run_until(
        [&] {
          if (p.link.now >= next) {
            next = p.link.now + microseconds(random.between(100, 3000));
            RecordUser& user = random.chance(0.5) ? p.a : p.b;
            tcp::Inside(*user.stream).cc.select(kKinds[random.below(3)]);
            ++switches;
          }
          return p.a.to_send.empty() && p.b.to_send.empty() && p.a.released_to == p.a.pulled &&
                 p.b.released_to == p.b.pulled;
        },
        seconds(600)));
    EXPECT_GT(switches, 20);
    EXPECT_TRUE(p.a.clean() && p.b.clean());
    EXPECT_GT(p.link.a.counters().ecn_reductions, 0u);
    EXPECT_GT(p.link.a.counters().fast_recoveries, 0u);
    ASSERT_TRUE(p.close());
    EXPECT_TRUE(p.everything_returned());
  }
}

}  // namespace
}  // namespace rnic::testing

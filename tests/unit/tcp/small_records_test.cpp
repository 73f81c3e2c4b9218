// Segments far smaller than SMSS, one record each: what counts as "a segment" must not become SMSS
// octets in dozens of packets, which a short queue loses again.
#include "raw_peer.hpp"
#include "tcp/connection.hpp"

namespace rnic::testing {
namespace {

constexpr uint32_t kSmall = 100;

tcp::Config small_config(bool frto = false) {
  tcp::Config c = RawPeer::bare();
  c.congestion_control = tcp::CongestionControl::NewReno;
  c.pack_records = false;
  c.frto = frto;
  return c;
}

struct SmallPeer : RawPeer {
  explicit SmallPeer(const tcp::Config& config) : RawPeer(config) {
    acceptor.next.push_back(&user);
    inject({.seq = kIrs, .flags = flag::kSyn, .options = option_mss(kMss)});
    next();
    wait(milliseconds(40));
    inject({.seq = kIrs + 1, .ack = kIss + 1, .flags = flag::kAck});
  }
  void send(uint32_t records) {
    for (uint32_t i = 0; i < records; ++i) user.queue(kSmall);
    stack.output(now);
  }
  void ack(uint32_t records) {
    inject({.seq = kIrs + 1, .ack = kIss + 1 + records * kSmall, .flags = flag::kAck});
  }
  /// Numbers of the records sent since, each alone in its segment.
  std::vector<uint32_t> sent() {
    std::vector<uint32_t> numbers;
    while (!silent()) {
      const Segment s = next();
      EXPECT_EQ(s.payload, kSmall);
      numbers.push_back((s.seq - kIss - 1) / kSmall);
    }
    return numbers;
  }
  void time_out() {
    const uint64_t before = stack.counters().timeouts;
    while (stack.counters().timeouts == before) {
      egress.sent.clear();
      wait(milliseconds(5));
    }
  }
  [[nodiscard]] tcp::Connection& c() { return static_cast<tcp::Connection&>(*user.stream); }
};

using Numbers = std::vector<uint32_t>;

// TCP-6298-5-01: RFC 6298 s.5.4. The earliest segment, and nothing behind it, at the first time-out
// and at each later one, until a new ACK.
TEST(SmallRecords, OneSegmentAtATimeout_TCP_6298_5_01) {
  for (const bool frto : {false, true}) {
    SmallPeer p(small_config(frto));
    p.send(60);
    EXPECT_EQ(p.sent().size(), 60u);
    for (int i = 0; i < 3; ++i) {
      p.time_out();
      EXPECT_EQ(p.sent(), (Numbers{0})) << i;
    }
    // Slow start, in segments: cwnd would let SMSS octets out, RFC 5682 s.2.1 step 2 two SMSS.
    p.ack(1);
    EXPECT_EQ(p.sent(), (Numbers{1, 2}));
  }
}

// RFC 5681 s.3.1, in segments: what goes again behind a time-out doubles with each round trip, is
// halved where it is lost, and grows by one from there on. By its octets cwnd would let fifteen go.
TEST(SmallRecords, BehindATimeoutSegmentsAreCounted_TCP_5681_3_1_02) {
  SmallPeer p(small_config());
  p.send(100);
  p.time_out();
  p.sent();
  p.ack(1);
  EXPECT_EQ(p.sent().size(), 2u);
  p.ack(3);
  EXPECT_EQ(p.sent().size(), 4u);
  p.ack(7);
  EXPECT_EQ(p.sent(), (Numbers{7, 8, 9, 10, 11, 12, 13, 14}));
  for (int i = 0; i < 3; ++i) p.ack(7);  // the first of the eight was lost
  EXPECT_EQ(p.sent(), (Numbers{7}));
  p.ack(11);  // four are in flight, as many as are admitted
  EXPECT_EQ(p.sent(), (Numbers{15}));
  p.ack(16);
  EXPECT_EQ(p.sent().size(), 6u);
  // A time-out begins anew, and slow start ends at half of what it found.
  p.time_out();
  EXPECT_EQ(p.sent(), (Numbers{16}));
  p.ack(17);
  EXPECT_EQ(p.sent().size(), 2u);
  p.ack(19);
  EXPECT_EQ(p.sent().size(), 3u);
}

// What is new is not held back, nor are segments of half SMSS and more.
TEST(SmallRecords, OnlySmallSegmentsAreCounted) {
  SmallPeer p(small_config());
  for (int i = 0; i < 4; ++i) p.user.queue(kMss / 2);
  p.stack.output(p.now);
  p.time_out();
  EXPECT_EQ(p.egress.sent.size(), 1u);
  p.egress.sent.clear();
  p.inject({.seq = kIrs + 1, .ack = kIss + 1 + kMss / 2, .flags = flag::kAck});
  EXPECT_EQ(p.egress.sent.size(), 3u);  // cwnd: one and a half SMSS
}

// RFC 5681 s.3.1: duplicates behind a time-out are of what was sent again, or before it.
TEST(SmallRecords, DuplicatesBehindATimeoutLetNothingOut_TCP_5681_3_2_01) {
  SmallPeer p(small_config());
  p.send(60);
  p.time_out();
  p.sent();
  for (int i = 0; i < 10; ++i) p.ack(0);
  EXPECT_EQ(p.sent(), Numbers{});
  p.ack(1);
  EXPECT_EQ(p.sent(), (Numbers{1, 2}));
  p.ack(1);
  p.ack(1);
  EXPECT_EQ(p.sent(), Numbers{});
  p.ack(1);  // RFC 6582 s.4.1: the third tells of the loss of a retransmission
  EXPECT_EQ(p.sent(), (Numbers{1}));
}

// TCP-3042-01, RFC 5681 s.3.2 step 4: one segment for one, not SMSS octets of segments.
TEST(SmallRecords, ADuplicateLetsOneSegmentOut_TCP_3042_01) {
  SmallPeer p(small_config());
  p.send(400);
  const auto first = static_cast<uint32_t>(p.sent().size());
  EXPECT_GT(first, 100u);
  EXPECT_LT(first, 400u);
  p.ack(0);
  EXPECT_EQ(p.sent(), (Numbers{first}));
  p.ack(0);
  EXPECT_EQ(p.sent(), (Numbers{first + 1}));
  EXPECT_EQ(p.c().board.reno_sacked, 2u * kSmall);
  p.ack(0);
  EXPECT_EQ(p.sent().front(), 0u);
  EXPECT_EQ(p.c().recovery.phase, tcp::RecoveryPhase::Recovery);
  // Each later one stands for a segment, too, until half of them are out of the network.
  const uint64_t pipe = p.c().pipe();
  for (uint32_t i = 1; i <= 20; ++i) {
    p.ack(0);
    EXPECT_EQ(p.c().board.reno_sacked, (3u + i) * kSmall);
    EXPECT_LE(p.sent().size(), 1u) << i;
    EXPECT_LE(p.c().pipe(), pipe);
  }
  // A partial ACK takes out the hole and what the duplicates stood for behind it.
  p.ack(11);
  EXPECT_EQ(p.c().board.reno_sacked, 13u * kSmall);
  EXPECT_EQ(p.sent().front(), 11u);
}

// Records that were packed are one segment of the size that they had together.
TEST(SmallRecords, APackedSegmentCountsWhole) {
  tcp::Config config = small_config();
  config.pack_records = true;
  SmallPeer p(config);
  p.send(140);
  for (const Segment& s : p.egress.sent) EXPECT_EQ(s.payload, 14 * kSmall);
  p.egress.sent.clear();
  p.ack(0);
  EXPECT_EQ(p.c().board.reno_sacked, 14u * kSmall);
  p.ack(0);
  EXPECT_EQ(p.c().board.reno_sacked, 28u * kSmall);
}

}  // namespace
}  // namespace rnic::testing

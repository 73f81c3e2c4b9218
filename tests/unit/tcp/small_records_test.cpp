// Segments far smaller than SMSS, one record each: what counts as "a segment" must not become SMSS
// octets in dozens of packets, which a short queue loses again.
#include <algorithm>

#include "raw_peer.hpp"
#include "unit/tcp/inside.hpp"

namespace rnic::testing {
namespace {

constexpr uint32_t kSmall = 100;

tcp::Config small_config(bool frto = false) {
  tcp::Config c = RawPeer::bare();
  c.congestion_control = CongestionControl::NewReno;
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
      const Segment s = expect({.flags = kAny, .payload = kSmall});  // PSH: the last of a send()
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
  [[nodiscard]] tcp::Inside c() { return tcp::Inside(*user.stream); }
};

using Numbers = std::vector<uint32_t>;

// RFC 6298 s.5.4. The earliest segment, and nothing behind it, at the first time-out and at each
// later one, until a new ACK.
TEST(SmallRecords, OneSegmentAtATimeout_TCP_6298_5_01) {
  for (const bool frto : {false, true}) {
    SmallPeer p(small_config(frto));
    p.send(60);
    EXPECT_EQ(p.sent().size(), 60u);
    for (int i = 0; i < 3; ++i) {
      p.time_out();
      EXPECT_EQ(p.sent(), (Numbers{0})) << i;
    }
    // Slow start: cwnd is SMSS, and what was acknowledged; RFC 5682 s.2.1 step 2 says two SMSS.
    p.ack(1);
    const Numbers more = p.sent();
    EXPECT_EQ(more.size(), (frto ? 2 * kMss : kMss + kSmall) / kSmall);
    for (uint32_t i = 0; i < more.size(); ++i) EXPECT_EQ(more[i], i + 1);
  }
}

// RFC 5682 s.3.1 step 2: two segments of new data, not two SMSS of them.
TEST(SmallRecords, FRtoTriesTwoNewSegments) {
  SmallPeer p(small_config(true));
  p.send(400);
  const auto first = static_cast<uint32_t>(p.sent().size());
  p.time_out();
  EXPECT_EQ(p.sent(), (Numbers{0}));
  p.ack(1);
  EXPECT_EQ(p.sent(), (Numbers{first, first + 1}));
  p.ack(2);  // it was late, not lost
  EXPECT_EQ(p.stack.counters().frto_undos, 1u);
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
  EXPECT_EQ(p.sent().size(), (kMss + kSmall) / kSmall);
  p.ack(1);
  p.ack(1);
  EXPECT_EQ(p.sent(), Numbers{});
  p.ack(1);  // RFC 6582 s.4.1: the third tells of the loss of a retransmission
  EXPECT_EQ(p.sent(), (Numbers{1}));
}

// RFC 6582 s.3.2 step 3 behind a time-out: of what it sent again several were lost again. The third
// duplicate tells of the first, each partial ACK of the next, and none waits for another time-out.
TEST(SmallRecords, PartialAcksTellWhatWasLostAgain_TCP_5681_3_2_01) {
  SmallPeer p(small_config());
  p.send(60);
  p.time_out();
  p.sent();
  p.ack(1);
  const auto last = p.sent().back();
  for (int i = 0; i < 3; ++i) p.ack(1);
  EXPECT_EQ(p.sent(), (Numbers{1}));
  const uint64_t timeouts = p.stack.counters().timeouts;
  for (const uint32_t lost : {4u, 5u, 9u, last}) {
    p.ack(lost);
    const Numbers again = p.sent();
    ASSERT_FALSE(again.empty()) << lost;
    EXPECT_EQ(again.front(), lost);
    EXPECT_EQ(std::count(again.begin(), again.end(), lost), 1);
  }
  // Behind what had gone by then nothing is taken for lost by an ACK alone.
  p.ack(last + 1);
  const Numbers behind = p.sent();
  EXPECT_EQ(std::count(behind.begin(), behind.end(), last + 1), 0);
  EXPECT_EQ(p.stack.counters().timeouts, timeouts);
}

// RFC 5681 s.3.2 step 4: one segment for one, not SMSS octets of segments.
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
  EXPECT_EQ(p.c().board.reno_sacked(), 2u * kSmall);
  p.ack(0);
  EXPECT_EQ(p.sent().front(), 0u);
  EXPECT_EQ(p.c().recovery.phase(), tcp::RecoveryPhase::Recovery);
  // Each later one stands for a segment, too, until half of them are out of the network.
  const uint64_t pipe = p.c().board.pipe();
  for (uint32_t i = 1; i <= 20; ++i) {
    p.ack(0);
    EXPECT_EQ(p.c().board.reno_sacked(), (3u + i) * kSmall);
    EXPECT_LE(p.sent().size(), 1u) << i;
    EXPECT_LE(p.c().board.pipe(), pipe);
  }
  // A partial ACK takes out the hole and what the duplicates stood for behind it.
  p.ack(11);
  EXPECT_EQ(p.c().board.reno_sacked(), 13u * kSmall);
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
  EXPECT_EQ(p.c().board.reno_sacked(), 14u * kSmall);
  p.ack(0);
  EXPECT_EQ(p.c().board.reno_sacked(), 28u * kSmall);
}

// RFC 6582 s.3.2 step 2: the third duplicate tells of the first segment alone. Where it is all that
// is in flight nothing behind it is looked at: there lie the records of another connection, which
// stand at the same offsets of another stream.
TEST(SmallRecords, ALossIsThatOfOneSegmentAndOneConnection) {
  constexpr uint32_t kTiny = 36;
  constexpr uint16_t kOtherPort = 2000;
  tcp::Config config = small_config();
  config.pack_records = true;
  RawPeer p(config);
  p.accept();
  for (uint32_t round = 1; round <= 2; ++round) {  // the second goes into chunks that came back
    for (int i = 0; i < 40; ++i) p.user.queue(kTiny);
    p.stack.output(p.now);
    p.expect({.flags = kPshAck, .payload = 40 * kTiny});
    if (round == 2) break;
    p.inject({.seq = kIrs + 1, .ack = kIss + 1 + 40 * kTiny, .flags = flag::kAck});
  }
  RecordUser other{11, 22};
  p.acceptor.next.push_back(&other);
  const auto from_other = [&p](uint32_t seq, uint32_t acked, uint8_t flags) {
    const bool syn = flags == flag::kSyn;
    p.inject({.seq = seq,
              .ack = kIss + 1 + acked,
              .flags = flags,
              .options = syn ? option_mss(kMss) : std::vector<uint8_t>{},
              .source_port = kOtherPort});
  };
  from_other(kIrs, 0, flag::kSyn);
  from_other(kIrs + 1, 0, flag::kAck);
  for (uint32_t i = 0; i < 2; ++i) {
    from_other(kIrs + 1, i * kMss, flag::kAck);
    other.queue(kMss);
    p.stack.output(p.now);
  }
  for (int i = 0; i < 3; ++i) from_other(kIrs + 1, kMss, flag::kAck);
  const tcp::Inside c(*other.stream);
  EXPECT_EQ(c.recovery.phase(), tcp::RecoveryPhase::Recovery);
  EXPECT_EQ(c.board.lost_octets(), kMss);
  EXPECT_EQ(p.stack.info(*other.stream, p.now)->lost, 1u);
  const tcp::Scoreboard& records = tcp::Inside(*p.user.stream).board;
  for (uint64_t n = records.first(); n < records.past_last(); ++n) {
    EXPECT_FALSE(records.at(n).is(tcp::record_flag::kLost)) << n;
  }
  p.stack.validate();
}

}  // namespace
}  // namespace rnic::testing

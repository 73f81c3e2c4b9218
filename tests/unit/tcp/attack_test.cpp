#include "base/prng.hpp"
#include "pair.hpp"
#include "raw_peer.hpp"

namespace rnic::testing {
namespace {

void fill_pipe(RawPeer& p, uint32_t records) {
  p.accept(option_mss(1000), {}, 65535);
  for (uint32_t i = 0; i < records; ++i) p.user.queue(1000);
  p.stack.output(p.now);
}

TEST(Attack, DividedAcksGrowTheWindowNoFaster) {
  uint32_t grown[2];
  for (const uint32_t step : {1000u, 10u}) {
    RawPeer p;
    fill_pipe(p, 1000);
    for (uint32_t at = step; at <= 5000; at += step) {
      p.inject({.seq = kIrs + 1, .ack = kIss + 1 + at, .flags = flag::kAck});
    }
    grown[step == 10] = p.stack.info(*p.user.stream, p.now)->cwnd;
  }
  EXPECT_LE(grown[1], grown[0]);
}

TEST(Attack, OptimisticAcksAreDroppedAndAnsweredAtALimitedRate) {
  tcp::Config config = RawPeer::bare();
  config.challenge_ack_limit = 10;
  RawPeer p(config);
  fill_pipe(p, 10);
  const uint64_t sent = p.user.pulled;
  p.egress.sent.clear();
  for (uint32_t i = 1; i <= 100; ++i) {
    p.inject(
        {.seq = kIrs + 1, .ack = kIss + 1 + static_cast<uint32_t>(sent) + i, .flags = flag::kAck});
  }
  EXPECT_EQ(p.user.released_to, 0u);
  EXPECT_LE(p.egress.sent.size(), 10u);
  EXPECT_EQ(p.stack.counters().challenge_acks_limited, 90u);
}

// TCP-5961-3-01, TCP-5961-4-01, TCP-5961-5-01
TEST(Attack, BlindSegmentsAnywhereInTheSequenceSpaceDoNothing) {
  RawPeer p;
  fill_pipe(p, 5);
  base::Prng random(8);
  const auto blind = [&](uint8_t flags, uint32_t payload) {
    uint32_t seq = random.next32();
    if (seq == kIrs + 1) ++seq;
    uint32_t ack = random.next32();
    if (ack - (kIss + 1) <= 5000 || (kIss + 1) - ack <= 65535) ack = kIss + 0x40000000;
    p.inject({.seq = seq, .ack = ack, .flags = flags, .payload = payload});
  };
  for (int i = 0; i < 20000; ++i) {
    blind(flag::kRst, 0);
    blind(flag::kSyn, 0);
    blind(flag::kAck, 10);
    blind(flag::kAck, 0);
    blind(flag::kSyn | flag::kAck, 0);
    p.egress.sent.clear();
  }
  EXPECT_FALSE(p.user.how_ended);
  EXPECT_EQ(p.user.ordered_to, 0u);
  EXPECT_EQ(p.user.released_to, 0u);
  EXPECT_EQ(p.stack.live_connections(), 1u);
}

TEST(Attack, ChallengeAcksAreLimitedByCountAndInterval_TCP_5961_7_01) {
  tcp::Config config = RawPeer::bare();
  config.challenge_ack_limit = 7;
  config.challenge_ack_interval = milliseconds(250);
  RawPeer p(config);
  p.accept();
  for (int round = 0; round < 4; ++round) {
    p.egress.sent.clear();
    for (int i = 0; i < 50; ++i) p.inject({.seq = kIrs + 100, .flags = flag::kRst});
    EXPECT_EQ(p.egress.sent.size(), 7u);
    p.wait(milliseconds(250));
  }
  EXPECT_EQ(p.stack.counters().challenge_acks, 28u);
}

TEST(Attack, AFloodOfSackBlocksIsBoundedWork) {
  // 16,000 records in flight; every ACK names ranges that are new by one octet. What it costs is
  // bounded by the blocks, not by the records between them: the whole flood takes less time than
  // one walk over all records for each ACK would.
  tcp::Config config;
  config.timestamps = false;
  config.initial_window_segments = 64;
  config.max_cwnd = 64u << 20;
  config.max_records = 65536;
  RawPeer p(config);
  p.accept(option_mss(1460) + option_sack_permitted() + std::vector<uint8_t>{1, 3, 3, 14}, {},
           65535);
  uint32_t una = 0;
  for (int i = 0; i < 60000; ++i) p.user.queue(100);
  for (int i = 0; i < 200 && p.user.pulled < 4'000'000; ++i) {
    p.stack.output(p.now);
    p.egress.sent.clear();
    una = static_cast<uint32_t>(p.user.pulled) -
          std::min<uint32_t>(static_cast<uint32_t>(p.user.pulled), 1'600'000);
    p.inject({.seq = kIrs + 1, .ack = kIss + 1 + una, .flags = flag::kAck, .window = 65535});
    p.now += microseconds(100);
  }
  const uint32_t nxt = kIss + 1 + static_cast<uint32_t>(p.user.pulled);
  una += kIss + 1;
  for (uint32_t i = 1; i < 20000 && una + 200 + i < nxt - i; ++i) {
    p.inject({.seq = kIrs + 1,
              .ack = una,
              .flags = flag::kAck,
              .window = 65535,
              .options = option_sack({{nxt - i, nxt}})});
    p.egress.sent.clear();
  }
  EXPECT_FALSE(p.user.how_ended);
  p.user.stream->abort();
  p.stack.output(p.now);
  EXPECT_TRUE(p.stack.quiescent());
}

TEST(Attack, APeerThatNeverReadsCostsNoMemoryBeyondTheLimits) {
  tcp::Config config;
  config.max_records_per_connection = 64;
  Pair p(config, {});
  p.b.room = 0;
  ASSERT_TRUE(p.open());
  for (int i = 0; i < 5000; ++i) p.a.queue(1448);
  p.link.run(seconds(600));
  EXPECT_FALSE(p.a.how_ended);  // its probes are answered
  EXPECT_LE((p.a.pulled - p.a.released_to) / 1448, 64u);
  EXPECT_LE(p.b.ordered_to, 65535u);
  EXPECT_LT(p.link.a.counters().window_probes, 60u);  // exponential back-off
  p.b.room = 1 << 20;
  p.b.stream->room_grew();
  EXPECT_TRUE(p.drain(seconds(120)));
  EXPECT_TRUE(p.b.clean());
}

TEST(Attack, PeersThatOpenAndStallGoAway) {
  tcp::Config config = RawPeer::bare();
  config.keep_alive = true;
  config.keep_alive_idle = seconds(30);
  config.keep_alive_interval = seconds(5);
  config.keep_alive_count = 2;
  RawPeer p(config);
  std::vector<std::unique_ptr<RecordUser>> users;
  for (uint16_t port = 1; port <= 100; ++port) {
    users.push_back(std::make_unique<RecordUser>(1, 2));
    p.acceptor.next.push_back(users.back().get());
    p.inject({.seq = kIrs, .flags = flag::kSyn, .source_port = port});
    p.inject({.seq = kIrs + 1, .ack = kIss + 1, .flags = flag::kAck, .source_port = port});
  }
  EXPECT_EQ(p.stack.live_connections(), 100u);
  p.wait(seconds(60));
  EXPECT_EQ(p.stack.live_connections(), 0u);
  EXPECT_EQ(p.stack.counters().keep_alive_timeouts, 100u);
}

// A FIN in the middle of what was taken already would end the stream where it does not end, or
// never.
TEST(Attack, AFinBelowOctetsThatWereTakenIsNone) {
  RawPeer p;
  p.accept();
  p.data(50, 100);
  p.inject({.seq = kIrs + 1 + 100, .ack = kIss + 1, .flags = flag::kFin | flag::kAck});
  p.stack.validate();
  p.data(0, 50);
  p.stack.validate();
  EXPECT_EQ(p.user.ordered_to, 150u);
  p.data(140, 60);
  p.stack.validate();
  EXPECT_EQ(p.user.ordered_to, 200u);
  EXPECT_FALSE(p.user.peer_has_finished);
  p.inject({.seq = kIrs + 1 + 200, .ack = kIss + 1, .flags = flag::kFin | flag::kAck});
  EXPECT_TRUE(p.user.peer_has_finished);
  EXPECT_TRUE(p.user.clean());
}

}  // namespace
}  // namespace rnic::testing

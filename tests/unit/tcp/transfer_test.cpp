#include "pair.hpp"

namespace rnic::testing {
namespace {

namespace flag = wire::tcp_flag;

// TCP-9293-3.5-01
TEST(Transfer, HandshakeTellsBothEnds_TCP_9293_3_5_01) {
  Pair p;
  ASSERT_TRUE(p.open());
  EXPECT_EQ(p.a.established_emss, 1500u - 40 - 12);  // TCP-9293-3.7.1-03
  EXPECT_EQ(p.b.established_emss, 1500u - 40 - 12);
  EXPECT_EQ(p.a.stream->remote().port, kPort);
  EXPECT_GE(p.a.stream->local().port, 49152);
  EXPECT_EQ(p.b.stream->remote(), p.a.stream->local());
}

TEST(Transfer, DataBothWaysArrivesOnceAndInOrder) {
  Pair p;
  ASSERT_TRUE(p.open());
  for (int i = 0; i < 3000; ++i) {
    p.a.queue(1448);
    p.b.queue(700);
  }
  ASSERT_TRUE(p.drain());
  EXPECT_TRUE(p.a.clean() && p.b.clean());
  EXPECT_EQ(p.b.ordered_to, 3000u * 1448);
  EXPECT_EQ(p.a.ordered_to, 3000u * 700);
  EXPECT_EQ(p.link.a.counters().retransmitted_segments, 0u);
  ASSERT_TRUE(p.close());
  EXPECT_EQ(*p.a.how_ended, llp::StreamEnd::Closed);
  EXPECT_EQ(*p.b.how_ended, llp::StreamEnd::Closed);
  EXPECT_TRUE(p.everything_returned());
}

TEST(Transfer, DataOfTheHandshakesLastAckComesAfterEstablished) {
  Pair p;
  p.a.queue(100);
  // The bare ACK of the SYN-ACK is lost: the first record completes the handshake.
  p.link.hook = [](const LinkFrame& f) {
    return Fate{.drop = f.from_a && f.number == 1 && f.payload() == 0};
  };
  ASSERT_TRUE(p.open());
  ASSERT_TRUE(p.drain());
  EXPECT_TRUE(p.b.clean());
}

TEST(Transfer, SegmentsBeginAtRecordsAndHoldThemWhole) {
  tcp::Config config;
  config.pack_records = false;
  Pair p(config, config);
  ASSERT_TRUE(p.open());
  std::vector<uint32_t> sizes;
  p.link.seen = [&](const LinkFrame& f) {
    if (f.from_a && f.payload() != 0) sizes.push_back(f.payload());
  };
  for (const uint32_t n : {1000u, 1448u, 1u, 64u, 900u}) p.a.queue(n);
  ASSERT_TRUE(p.drain());
  EXPECT_EQ(sizes, (std::vector<uint32_t>{1000, 1448, 1, 64, 900}));
}

TEST(Transfer, SmallRecordsArePackedWhenPackingIsOn) {
  Pair p;
  ASSERT_TRUE(p.open());
  std::vector<uint32_t> sizes;
  p.link.seen = [&](const LinkFrame& f) {
    if (f.from_a && f.payload() != 0) sizes.push_back(f.payload());
  };
  for (int i = 0; i < 40; ++i) p.a.queue(100);
  ASSERT_TRUE(p.drain());
  EXPECT_EQ(sizes, (std::vector<uint32_t>{1400, 1400, 1200}));
  EXPECT_TRUE(p.b.clean());
}

TEST(Transfer, PushMarksTheLastRecordOfAMessage) {
  Pair p;
  ASSERT_TRUE(p.open());
  std::vector<bool> pushed;
  p.link.seen = [&](const LinkFrame& f) {
    if (f.from_a && f.payload() != 0) pushed.push_back(f.has(flag::kPsh));
  };
  for (int i = 0; i < 3; ++i) p.a.queue(1448);
  ASSERT_TRUE(p.drain());
  EXPECT_EQ(pushed, (std::vector<bool>{false, false, true}));
}

TEST(Transfer, AFullPortIsAWaitNotALoss) {
  Pair p;
  ASSERT_TRUE(p.open());
  for (int i = 0; i < 50; ++i) p.a.queue(1448);
  p.link.egress_a.refuse = 20;
  while (p.link.egress_a.refuse != 0) p.link.step();
  ASSERT_TRUE(p.drain());
  EXPECT_GE(p.link.a.counters().send_waits, 20u);
  EXPECT_EQ(p.link.a.counters().retransmitted_segments, 0u);
  EXPECT_TRUE(p.b.clean());
}

// TCP-9293-3.4-01
TEST(Transfer, SequenceNumbersWrap_TCP_9293_3_4_01) {
  Pair p;
  p.link.a.force_isn(0xffffffff - 5000);
  p.link.b.force_isn(0xfffffffe);
  ASSERT_TRUE(p.open());
  uint32_t seed = 1;
  p.link.hook = [&](const LinkFrame& f) {
    seed = seed * 1664525 + 1013904223;
    return Fate{.drop = f.payload() != 0 && seed >> 24 < 8};
  };
  for (int i = 0; i < 300; ++i) {
    p.a.queue(1448);
    p.b.queue(1000);
  }
  ASSERT_TRUE(p.drain());
  EXPECT_TRUE(p.a.clean() && p.b.clean());
}

// TCP-9293-3.1-01
TEST(Transfer, ChecksumIsWrittenAndChecked_TCP_9293_3_1_01) {
  Pair p;
  ASSERT_TRUE(p.open());
  p.a.queue(1000);
  ASSERT_TRUE(p.drain());
  EXPECT_EQ(p.link.b.counters().checksum_errors, 0u);
  std::vector<uint8_t> bad;
  p.link.seen = [&](const LinkFrame& f) {
    if (f.from_a && f.payload() != 0) bad = f.tcp;
  };
  p.a.queue(1000);
  ASSERT_TRUE(p.drain());
  bad.back() ^= 1;
  p.link.b.input({.source = kAddressA, .destination = kAddressB, .tcp = bad}, p.link.now);
  EXPECT_EQ(p.link.b.counters().checksum_errors, 1u);
}

TEST(Transfer, WithoutAnyOptionItStillWorks) {
  tcp::Config bare;
  bare.sack = bare.timestamps = bare.window_scaling = false;
  Pair p(bare, tcp::Config{});
  ASSERT_TRUE(p.open());
  EXPECT_EQ(p.a.established_emss, 1460u);
  for (int i = 0; i < 500; ++i) p.a.queue(1460);
  ASSERT_TRUE(p.drain());
  EXPECT_TRUE(p.b.clean());
}

}  // namespace
}  // namespace rnic::testing

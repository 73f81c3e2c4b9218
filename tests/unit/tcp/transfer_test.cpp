#include "pair.hpp"

namespace rnic::testing {
namespace {

namespace flag = wire::tcp_flag;

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
  EXPECT_EQ(*p.a.how_ended, StreamEnd::Closed);
  EXPECT_EQ(*p.b.how_ended, StreamEnd::Closed);
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

// One turn of output sends so much in all, so that arrivals are not kept waiting. What it leaves
// over is due at once, also for an owner that only sleeps until the next deadline.
TEST(Transfer, WhatATurnLeavesOverIsDueAtOnce) {
  constexpr uint32_t kRecords = 128;
  tcp::Config config;
  config.initial_window_segments = kRecords;
  Pair p(config, config);
  ASSERT_TRUE(p.open());
  p.a.queue(1448);  // its ACK tells of a window that takes all that follows
  ASSERT_TRUE(p.drain());
  const base::Now now = p.link.now;
  EXPECT_GT(p.link.a.next_deadline(), now);
  for (uint32_t i = 0; i < kRecords; ++i) p.a.queue(1448);
  p.link.a.output(now);
  EXPECT_FALSE(p.a.to_send.empty());
  EXPECT_LE(p.link.a.next_deadline(), now);
  p.link.a.output(now);
  EXPECT_TRUE(p.a.to_send.empty()) << "in two turns";
  EXPECT_GT(p.link.a.next_deadline(), now);
  ASSERT_TRUE(p.drain());
  EXPECT_TRUE(p.b.clean());
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

// A peer that has what it wanted may end at once. What it has taken was not sent in vain: it is
// acknowledged before the RST, though the ACK was to wait.
TEST(Transfer, WhatWasTakenIsAcknowledgedBeforeARst) {
  Pair p;
  ASSERT_TRUE(p.open());
  const uint64_t begin = p.a.released_to;
  p.a.queue(1000);
  const auto taken = [&] { return p.b.ordered_to == 1000; };
  ASSERT_TRUE(p.link.run_until(taken, std::chrono::seconds(1)));
  ASSERT_EQ(p.a.released_to, begin) << "its ACK waits";
  p.b.stream->abort();
  ASSERT_TRUE(p.link.run_until([&] { return p.a.how_ended.has_value(); }, std::chrono::seconds(1)));
  EXPECT_EQ(*p.a.how_ended, StreamEnd::PeerReset);
  EXPECT_EQ(p.a.released_to, begin + 1000);
}

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

/// The sum over a pseudo header that is laid out octet by octet, and the segment; 0: it is right.
uint16_t summed(const std::vector<uint8_t>& source, const std::vector<uint8_t>& destination,
                base::ByteView tcp) {
  std::vector<uint8_t> octets = source;
  octets.insert(octets.end(), destination.begin(), destination.end());
  // RFC 9293 s.3.1, RFC 8200 s.8.1: the length, and the protocol as the last octet.
  if (source.size() == 16) octets.insert(octets.end(), 2, 0);
  if (source.size() == 4) octets.insert(octets.end(), {0, 6});
  octets.push_back(static_cast<uint8_t>(tcp.size() >> 8));
  octets.push_back(static_cast<uint8_t>(tcp.size()));
  if (source.size() == 16) octets.insert(octets.end(), {0, 0, 0, 6});
  octets.insert(octets.end(), tcp.begin(), tcp.end());
  uint64_t sum = 0;
  for (size_t i = 0; i < octets.size(); ++i) sum += uint64_t{octets[i]} << (i % 2 == 0 ? 8 : 0);
  while (sum >> 16 != 0) sum = (sum & 0xffff) + (sum >> 16);
  return static_cast<uint16_t>(~sum);
}

/// Keeps what a stack sends, checksum and all.
class WholeEgress final : public tcp::Egress {
 public:
  bool begin(const IpAddress&, const IpAddress&, tcp::TxSlot& slot, base::Now) override {
    slot = {.tcp = buffer_.data(), .room = 1400, .checksum_open = false, .frame = nullptr};
    return true;
  }
  void send(tcp::TxSlot& slot, uint32_t length, base::Now) override {
    sent.emplace_back(slot.tcp, slot.tcp + length);
  }
  void cancel(tcp::TxSlot&) override {}
  [[nodiscard]] uint32_t path_mtu(IpAddress, base::Now) const override { return 1500; }
  [[nodiscard]] uint32_t link_mtu(IpAddress) const override { return 1500; }
  void reduce_path_mtu(IpAddress, uint32_t, base::Now) override {}

  std::vector<std::vector<uint8_t>> sent;

 private:
  std::array<uint8_t, 2048> buffer_{};
};

// TCP-9293-3.1-01-a, TCP-9293-3.1-01-b, TCP-9293-3.1-01-c: against a sum of the test's own, over
// both versions of IP: each octet of both addresses and of the segment is in it.
TEST(Transfer, ChecksumsOfBothVersions_TCP_9293_3_1_01) {
  for (const bool v4 : {true, false}) {
    std::vector<uint8_t> us(v4 ? 4 : 16), peer(v4 ? 4 : 16);
    for (size_t i = 0; i < us.size(); ++i) us[i] = static_cast<uint8_t>(0x20 + 7 * i);
    for (size_t i = 0; i < peer.size(); ++i) peer[i] = static_cast<uint8_t>(0x21 + 11 * i);
    const auto address = [v4](const std::vector<uint8_t>& octets) {
      return v4 ? IpAddress::v4(base::load_be32(octets.data()))
                : IpAddress(base::load_be64(octets.data()), base::load_be64(octets.data() + 8));
    };
    WholeEgress egress;
    UserAcceptor acceptor;
    const base::Now now = base::from_nanos(1'000'000'000);
    tcp::Stack stack({}, egress, {1, 2}, 3, now);
    ASSERT_TRUE(stack.listen({address(us), kPort}, acceptor).has_value());
    std::vector<uint8_t> syn(20);
    wire::write_tcp(syn.data(), {.source_port = 99,
                                 .destination_port = kPort,
                                 .sequence = base::Seq32(7),
                                 .acknowledgment = base::Seq32(0),
                                 .flags = wire::tcp_flag::kSyn,
                                 .window = 1000,
                                 .header_length = 20});
    base::store_be16(&syn[16], summed(peer, us, syn));
    ASSERT_EQ(summed(peer, us, syn), 0);
    const auto give = [&](const std::vector<uint8_t>& from, const std::vector<uint8_t>& tcp) {
      stack.input({.source = address(from), .destination = address(us), .tcp = tcp}, now);
      stack.output(now);
    };
    uint64_t wrong = 0;
    for (size_t i = 0; i < syn.size(); ++i) {
      if (i == 12) continue;  // the header's length
      auto bad = syn;
      bad[i] ^= 0x10;
      give(peer, bad);
      EXPECT_EQ(stack.counters().checksum_errors, ++wrong) << i;
    }
    for (size_t i = 0; i < peer.size(); ++i) {
      auto other = peer;
      other[i] ^= 0x04;
      give(other, syn);
      EXPECT_EQ(stack.counters().checksum_errors, ++wrong) << i;
    }
    EXPECT_TRUE(egress.sent.empty()) << "all of them were dropped";
    EXPECT_EQ(stack.live_connections(), 0u);
    give(peer, syn);
    ASSERT_EQ(egress.sent.size(), 1u);
    EXPECT_EQ(summed(us, peer, egress.sent[0]), 0);
    auto zeroed = egress.sent[0];
    base::store_be16(&zeroed[16], 0);
    EXPECT_EQ(summed(us, peer, zeroed), base::load_be16(&egress.sent[0][16]));
  }
}

// TCP-9293-3.1-01-a, TCP-9293-3.1-01-b: what is damaged on its way is as good as lost.
TEST(Transfer, ChecksumIsWrittenAndChecked_TCP_9293_3_1_01) {
  Pair p;
  ASSERT_TRUE(p.open());
  p.a.queue(1000);
  ASSERT_TRUE(p.drain());
  EXPECT_EQ(p.link.b.counters().checksum_errors, 0u);
  std::vector<uint8_t> bad;
  p.link.hook = [&](const LinkFrame& f) {
    const bool takes = bad.empty() && f.from_a && f.payload() != 0;
    if (takes) bad = f.tcp;
    return Fate{.drop = takes};
  };
  p.a.queue(1000);
  p.link.run(microseconds(1));
  ASSERT_FALSE(bad.empty());
  const auto give = [&] {
    p.link.b.input({.source = kAddressA, .destination = kAddressB, .tcp = bad}, p.link.now);
  };
  bad.back() ^= 1;
  const uint64_t before = p.b.ordered_to;
  give();
  EXPECT_EQ(p.link.b.counters().checksum_errors, 1u);
  EXPECT_EQ(p.b.ordered_to, before) << "dropped";
  bad.back() ^= 1;
  give();
  EXPECT_EQ(p.b.ordered_to, before + 1000);
  ASSERT_TRUE(p.drain());
  EXPECT_TRUE(p.a.clean() && p.b.clean());
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

// MPA on the MPA-aware TCP (RFC 5044 appendix A): what crosses the network when segments are lost,
// forged, cut or too long.

#include "mpa_over_tcp.hpp"

#include <gtest/gtest.h>

#include "base/prng.hpp"
#include "tcp/byte_stream.hpp"

namespace rnic::testing {
namespace {

// What MPA took over arrives, whatever the network does ...
TEST_F(MpaOverTcp, WhatWasAcceptedArrives_MPA_A_1_03) {
  base::Prng random(3);
  // A while in which nothing arrives, probes neither, is what only a time-out ends.
  uint32_t frames = 0;
  link.hook = [&](const LinkFrame&) {
    const bool silence = ++frames >= 60 && link.a.counters().timeouts == 0;
    return Fate{.drop = silence || random.chance(0.1)};
  };
  queue(400, 900);
  expect_all_delivered(seconds(600));
  EXPECT_GT(link.dropped, 10u);
  EXPECT_GT(link.a.counters().timeouts, 0u);
}

// ... or the connection fails, and says so.
TEST_F(MpaOverTcp, OrTheConnectionFails_MPA_A_1_03) {
  queue(20, 900);
  link.hook = [](const LinkFrame&) { return Fate{.drop = true}; };
  EXPECT_TRUE(link.run_until([&] { return !a.user.ends.empty(); }, seconds(3600)));
  EXPECT_EQ(a.user.ends, std::vector{StreamEnd::TimedOut});
  EXPECT_LT(b.user.delivered.size(), 20u);
}

// A retransmission has the boundaries of what it repeats.
TEST_F(MpaOverTcp, RetransmissionsKeepTheirBoundaries_MPA_A_1_04) {
  std::map<uint32_t, uint32_t> first;  // sequence number -> octets
  uint32_t repeated = 0;
  base::Prng random(5);
  link.seen = [&](const LinkFrame& frame) {
    if (!frame.from_a || frame.payload() == 0) return;
    const auto [known, fresh] = first.emplace(frame.sequence(), frame.payload());
    if (fresh) return;
    ++repeated;
    EXPECT_EQ(known->second, frame.payload());
  };
  link.hook = [&](const LinkFrame& frame) {
    return Fate{.drop = frame.from_a && frame.payload() != 0 && random.chance(0.1)};
  };
  for (int i = 0; i < 100; ++i) queue(1, 300 + 11 * static_cast<size_t>(i));
  expect_all_delivered(seconds(600));
  EXPECT_GT(repeated, 3u);
  // Every repeated segment began where a first one did: no other sequence number was used.
  EXPECT_EQ(link.a.counters().resegmented_records, 0u);
}

// What was placed ahead of the order is told by SACK.
TEST_F(MpaOverTcp, PlacedAheadAndSacked_MPA_A_3_03) {
  bool lost = false;
  size_t early_when_sacked = 0;
  link.hook = [&](const LinkFrame& frame) {
    const bool drop = !lost && frame.from_a && frame.payload() > 500;
    lost = lost || drop;
    return Fate{.drop = drop};
  };
  link.seen = [&](const LinkFrame& frame) {
    if (frame.from_a || !lost || early_when_sacked != 0) return;
    const auto view = wire::TcpView::parse(frame.tcp);
    wire::TcpOptions options;
    ASSERT_TRUE(view && options.parse(view->options()));
    if (options.sack_count != 0) early_when_sacked = b.user.placed.size();
  };
  queue(6, 1200);
  expect_all_delivered();
  EXPECT_GT(early_when_sacked, 0u);  // in memory already when the SACK left
  EXPECT_FALSE(b.user.placed.front().in_order);
}

/// Segments are taken from the wire, changed, and put in.
class Forged : public MpaOverTcp {
 protected:
  std::vector<std::vector<uint8_t>> caught(uint32_t count) { return testing::caught(*this, count); }
  void put_in(const std::vector<uint8_t>& tcp) { testing::put_in(*this, tcp); }
};

// Nothing reaches MPA out of order that any check of TCP refuses.
TEST_F(Forged, OnlyWhatTcpAcceptsIsPlacedAhead_MPA_A_3_01) {
  const auto frames = caught(3);
  const auto& second = frames[1];
  auto bad = second;
  bad.back() ^= 1;  // the checksum
  put_in(bad);
  bad = second;  // the window
  const uint32_t sequence = base::load_be32(&bad[wire::kTcpSequenceAt]);
  base::store_be32(&bad[wire::kTcpSequenceAt], sequence + (1u << 30));
  fix_checksum(bad);
  put_in(bad);
  bad = second;  // an ACK of what was never sent
  const uint32_t ack = base::load_be32(&bad[wire::kTcpAcknowledgmentAt]);
  base::store_be32(&bad[wire::kTcpAcknowledgmentAt], ack + (1u << 30));
  fix_checksum(bad);
  put_in(bad);
  bad = second;  // PAWS: the timestamps option stands behind two NOPs
  ASSERT_EQ(bad[kTcpHeader + 2], 8);
  const uint32_t timestamp = base::load_be32(&bad[kTcpHeader + 4]);
  base::store_be32(&bad[kTcpHeader + 4], timestamp - 100'000);
  fix_checksum(bad);
  put_in(bad);
  EXPECT_TRUE(b.user.placed.empty());
  EXPECT_EQ(link.b.counters().checksum_errors, 1u);
  EXPECT_EQ(link.b.counters().paws_rejected, 1u);
  put_in(second);  // as it was sent
  EXPECT_EQ(b.user.placed.size(), 1u);
  EXPECT_FALSE(b.user.placed[0].in_order);
  expect_all_delivered();
}

// The same sequence numbers again with other octets, whole and overlapping, under
// right checksums of TCP and right CRCs: what was taken first stays.
TEST_F(Forged, TheFirstCopyStays_UNH_MPA_2_12) {
  const auto frames = caught(3);
  const auto altered = [&](size_t i, uint8_t with) {
    auto frame = frames[i];
    frame[frame.size() - 100] ^= with;  // of the ULPDU; its CRC does not fit any more
    fix_checksum(frame);
    return frame;
  };
  put_in(frames[1]);
  EXPECT_EQ(b.user.placed.size(), 1u);
  put_in(altered(1, 1));  // a copy of what was placed ahead: not even looked at
  EXPECT_EQ(b.counters.crc_drops, 0u);
  put_in(altered(0, 1));  // a first copy with a wrong CRC is dropped before it is acknowledged
  EXPECT_EQ(b.counters.crc_drops, 1u);
  EXPECT_TRUE(b.user.delivered.empty());
  put_in(frames[0]);  // and the right one heals it
  EXPECT_EQ(b.user.delivered.size(), 2u);
  put_in(altered(0, 2));
  expect_all_delivered();
  EXPECT_EQ(b.user.delivered[0], test::numbered_ulpdu(0, 1000));
  EXPECT_EQ(b.user.delivered[1], test::numbered_ulpdu(1, 1000));
}

// The path shrinks under FPDUs that are posted and in flight; all arrive.
// UNH-MPA-2-13
TEST_F(MpaOverTcp, AShrinkingPathIsNoDeadlock_MPA_A_5_2_02) {
  for (const uint32_t mtu : {1000u, 576u, 296u}) {
    queue(8, a.session.mulpdu() - 20);
    link.hook = [&](const LinkFrame& frame) {
      if (frame.tcp.size() + 20 <= mtu) return Fate{};
      const llp::IcmpError too_big{.kind = llp::IcmpError::Kind::PacketTooBig,
                                   .mtu = mtu,
                                   .quoted_length = static_cast<uint32_t>(frame.tcp.size()) + 20,
                                   .source = kAddressA,
                                   .destination = kAddressB,
                                   .tcp = base::ByteView(frame.tcp).first(8)};
      pending_.push_back({too_big, frame.tcp});
      return Fate{.drop = true};
    };
    link.a.output(link.now);
    ASSERT_TRUE(a.user.to_send.empty());  // posted, all of them, for the larger path
    for (int i = 0; i < 2000 && b.user.delivered.size() < queued_; ++i) {
      link.run(milliseconds(5));
      for (auto& [error, octets] : pending_) {
        error.tcp = base::ByteView(octets).first(8);
        link.a.icmp_error(error, link.now);
      }
      pending_.clear();
    }
    expect_all_delivered();
    EXPECT_LE(stream_->emss(), mtu - 40);
  }
  EXPECT_GT(link.a.counters().resegmented_records, 0u);
}

// A user of plain octets gets the segments of any TCP: full ones, whatever the
// sizes of its writes.
TEST(PlainOctets, AreSegmentedAsByAnyTcp_MPA00_5_1_1_01) {
  struct One final : llp::Acceptor {
    llp::StreamUser* accept(llp::Stream& s, const Endpoint&, const Endpoint&, base::Now) override {
      user.attach(s);
      return &user;
    }
    tcp::ByteStream user{1 << 16};
  } far;
  TcpLink link;
  ASSERT_TRUE(link.b.listen({kAddressB, kPort}, far).has_value());
  tcp::ByteStream near(1 << 16);
  auto stream = link.a.connect({kAddressA, 0}, {kAddressB, kPort}, near, link.now);
  ASSERT_TRUE(stream.has_value());
  near.attach(**stream);
  ASSERT_TRUE(link.run_until([&] { return near.is_established(); }, seconds(1)));
  std::vector<uint32_t> sizes;
  link.seen = [&](const LinkFrame& frame) {
    if (frame.from_a && frame.payload() != 0) sizes.push_back(frame.payload());
  };
  const std::vector<uint8_t> octets(777, 5);
  for (int i = 0; i < 20; ++i) near.write(octets);
  ASSERT_TRUE(link.run_until([&] { return far.user.readable() == 20 * 777; }, seconds(5)));
  ASSERT_FALSE(sizes.empty());
  for (size_t i = 0; i + 1 < sizes.size(); ++i) EXPECT_EQ(sizes[i], (*stream)->emss());
}

// TCP is opened by both at once. Two initiators tell it and close, and no FPDU
// leaves; with the roles that the specification has, the same connection starts.
TEST(SimultaneousOpen, OfTwoInitiators_UNH_MPA_1_22) {
  for (const bool roles : {false, true}) {
    TcpLink link;
    mpa::Config config;
    config.exchange_reads = false;
    Speaker a(framing::Role::Initiator, config);
    Speaker b(roles ? framing::Role::Responder : framing::Role::Initiator, config);
    const Endpoint end_a{kAddressA, 5000}, end_b{kAddressB, 6000};
    a.send(1, 100);
    b.send(2, 100);
    a.session.attach(**link.a.connect(end_a, end_b, a.session, link.now));
    b.session.attach(**link.b.connect(end_b, end_a, b.session, link.now));
    uint64_t octets = 0;
    link.seen = [&](const LinkFrame& frame) { octets += frame.payload(); };
    if (!roles) {
      ASSERT_TRUE(link.run_until(
          [&] { return !a.events.failures.empty() && !b.events.failures.empty(); }, seconds(5)));
      link.run(seconds(30));
      for (Speaker* one : {&a, &b}) {
        EXPECT_EQ(one->events.failures, std::vector{framing::StartFailure::BothInitiators});
        EXPECT_EQ(one->user.ends.size(), 1u);
        EXPECT_TRUE(one->user.placed.empty());
      }
      EXPECT_EQ(octets, 2 * 20u) << "a Request each way";
      continue;
    }
    ASSERT_TRUE(link.run_until([&] { return !b.events.requests.empty(); }, seconds(5)));
    b.session.accept({}, link.now);
    EXPECT_TRUE(link.run_until(
        [&] { return a.user.delivered.size() == 1 && b.user.delivered.size() == 1; }, seconds(5)));
  }
}

}  // namespace
}  // namespace rnic::testing

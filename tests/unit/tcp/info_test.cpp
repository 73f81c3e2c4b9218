#include "pair.hpp"
#include "raw_peer.hpp"

namespace rnic::testing {
namespace {

TEST(Info, ShowsWhatIsInTheNetworkAndWhatIsLost) {
  tcp::Config config = RawPeer::bare();
  config.sack = true;
  RawPeer p(config);
  p.accept(option_mss(1000) + option_sack_permitted());
  for (int i = 0; i < 5; ++i) p.user.queue(1000);
  p.stack.output(p.now);
  tcp::ConnectionInfo info = *p.stack.info(*p.user.stream, p.now);
  EXPECT_EQ(info.state, tcp::State::Established);
  EXPECT_EQ(info.loss_state, tcp::LossState::Open);
  EXPECT_TRUE(info.sack);
  EXPECT_FALSE(info.timestamps);
  EXPECT_EQ(info.emss, 1000u);
  EXPECT_EQ(info.unacked, 5u);
  EXPECT_EQ(info.pipe, 5000u);
  EXPECT_EQ(info.cwnd, 10000u);
  EXPECT_TRUE(info.slow_start);
  // The first one is lost: three later ones are reported.
  p.now += milliseconds(10);
  p.inject({.seq = kIrs + 1,
            .ack = kIss + 1,
            .flags = flag::kAck,
            .options = option_sack({{kIss + 1001, kIss + 4001}})});
  info = *p.stack.info(*p.user.stream, p.now);
  EXPECT_EQ(info.loss_state, tcp::LossState::Recovery);
  EXPECT_EQ(info.sacked, 3u);
  EXPECT_EQ(info.lost, 1u);
  EXPECT_EQ(info.retransmitted, 1u);
  EXPECT_LT(info.ssthresh, 10000u);
  // Everything arrives.
  p.inject({.seq = kIrs + 1, .ack = kIss + 5001, .flags = flag::kAck});
  info = *p.stack.info(*p.user.stream, p.now);
  EXPECT_EQ(info.loss_state, tcp::LossState::Open);
  EXPECT_EQ(info.unacked, 0u);
  EXPECT_EQ(info.snd_una, 5000u);
  EXPECT_GE(info.rto, info.srtt);
}

// What was sent again counts as such until it is acknowledged.
TEST(Info, CountsTheSegmentsThatWereSentMoreThanOnce) {
  tcp::Config config = RawPeer::bare();
  config.sack = true;
  RawPeer p(config);
  p.accept(option_mss(1000) + option_sack_permitted());
  for (int i = 0; i < 5; ++i) p.user.queue(1000);
  p.stack.output(p.now);
  EXPECT_EQ(p.stack.info(*p.user.stream, p.now)->total_resent, 0u);
  p.now += milliseconds(10);
  p.inject({.seq = kIrs + 1,
            .ack = kIss + 1,
            .flags = flag::kAck,
            .options = option_sack({{kIss + 1001, kIss + 4001}})});
  ASSERT_EQ(p.stack.counters().retransmitted_segments, 1u);
  EXPECT_EQ(p.stack.info(*p.user.stream, p.now)->total_resent, 1u);
  p.inject({.seq = kIrs + 1, .ack = kIss + 5001, .flags = flag::kAck});
  EXPECT_EQ(p.stack.info(*p.user.stream, p.now)->total_resent, 0u);
}

// A record that is larger than EMSS by now counts for as many segments as it takes to send it
// again, and not for one more where it fills them.
TEST(Info, ARecordThatIsLargerThanEmssCountsForItsPieces) {
  for (const uint32_t length : {961u, 1200u, 1439u, 1440u, 1441u}) {
    RawPeer p;
    p.accept();
    p.send_record(length);
    EXPECT_EQ(p.stack.info(*p.user.stream, p.now)->unacked, 1u);
    p.egress.mtu = 40 + 480;
    p.send_record(100);
    const tcp::ConnectionInfo info = *p.stack.info(*p.user.stream, p.now);
    ASSERT_EQ(info.emss, 480u);
    ASSERT_EQ(info.snd_nxt, length + 100);
    EXPECT_EQ(info.unacked, (length <= 1440 ? 3u : 4u) + 1) << length;
  }
}

// Round-trip times are 0 until one was measured.
TEST(Info, WhatWasNotMeasuredIsZero) {
  RawPeer p;
  RecordUser user{1, 2};
  const auto stream = p.stack.connect({RawPeer::kUs, 0}, {RawPeer::kPeer, 80}, user, p.now);
  ASSERT_TRUE(stream.has_value());
  const tcp::ConnectionInfo info = *p.stack.info(**stream, p.now);
  EXPECT_EQ(info.srtt, base::Duration(0));
  EXPECT_EQ(info.rttvar, base::Duration(0));
  EXPECT_EQ(info.min_rtt, base::Duration(0));
}

TEST(Info, OfAnothersStreamIsNothing) {
  RawPeer p;
  p.accept();
  RawPeer other;
  EXPECT_TRUE(p.stack.info(*p.user.stream, p.now).has_value());
  EXPECT_FALSE(other.stack.info(*p.user.stream, other.now).has_value());
  tcp::ConnectionOptions options = p.stack.options(*p.user.stream);
  EXPECT_DEATH(options = other.stack.options(*p.user.stream), "of_this_stack");
  EXPECT_DEATH(static_cast<void>(other.stack.set_options(*p.user.stream, options, other.now)),
               "of_this_stack");
}

}  // namespace
}  // namespace rnic::testing

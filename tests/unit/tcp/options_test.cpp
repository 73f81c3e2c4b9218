#include "raw_peer.hpp"

namespace rnic::testing {
namespace {

constexpr uint32_t kIss = RawPeer::kIss;
constexpr uint32_t kIrs = RawPeer::kIrs;

TEST(Options, ASegmentWithAWrongAckDoesNotMoveTsRecent) {
  tcp::Config config = RawPeer::bare();
  config.timestamps = true;
  RawPeer p(config);
  p.accept(option_mss(1000) + option_timestamps(100, 0), option_timestamps(200, 0));
  // Forged: the timestamp is far ahead, the ACK is of what was never sent.
  p.inject({.seq = kIrs + 1,
            .ack = kIss + 9999,
            .flags = flag::kAck | flag::kPsh,
            .payload = 100,
            .options = option_timestamps(200000, 0)});
  p.next();
  p.inject({.seq = kIrs + 1,
            .ack = kIss + 1,
            .flags = flag::kAck | flag::kPsh,
            .payload = 100,
            .options = option_timestamps(201, 0)});
  const Segment ack = p.next();
  EXPECT_EQ(ack.ack, kIrs + 101);
  ASSERT_TRUE(ack.parsed.timestamps.has_value());
  EXPECT_EQ(ack.parsed.timestamps->echo, 201u);
  EXPECT_EQ(p.stack.counters().paws_rejected, 0u);
}

TEST(Options, TheSynAckOfASimultaneousOpenHasWhatThePeerOffered) {
  RawPeer p(tcp::Config{});
  const Segment syn = p.connect();
  EXPECT_TRUE(syn.parsed.timestamps && syn.parsed.window_scale && syn.parsed.sack_permitted);
  p.inject({.seq = kIrs, .flags = flag::kSyn, .options = option_mss(1000)});
  Segment syn_ack = p.next();
  EXPECT_EQ(syn_ack.flags, flag::kSyn | flag::kAck);
  EXPECT_TRUE(syn_ack.parsed.mss.has_value());
  EXPECT_FALSE(syn_ack.parsed.timestamps || syn_ack.parsed.window_scale ||
               syn_ack.parsed.sack_permitted);

  RawPeer q(tcp::Config{});
  q.connect();
  q.inject({.seq = kIrs,
            .flags = flag::kSyn,
            .options = option_mss(1000) + option_sack_permitted() + option_timestamps(5, 0)});
  syn_ack = q.next();
  EXPECT_TRUE(syn_ack.parsed.timestamps && syn_ack.parsed.sack_permitted);
  EXPECT_FALSE(syn_ack.parsed.window_scale);
}

TEST(Options, AResetOfAConnectionHasItsTimestamps) {
  tcp::Config config = RawPeer::bare();
  config.timestamps = true;
  RawPeer p(config);
  p.accept(option_mss(1000) + option_timestamps(100, 0), option_timestamps(200, 0));
  p.data(0, 0);
  p.user.queue(100);
  p.stack.output(p.now);
  const Segment data = p.next();
  p.now += milliseconds(700);
  p.user.stream->abort();
  p.stack.output(p.now);
  const Segment rst = p.next();
  EXPECT_EQ(rst.flags, flag::kRst | flag::kAck);
  ASSERT_TRUE(rst.parsed.timestamps.has_value());
  EXPECT_EQ(rst.parsed.timestamps->value, data.parsed.timestamps->value + 700);
  EXPECT_EQ(rst.parsed.timestamps->echo, 200u);
}

}  // namespace
}  // namespace rnic::testing

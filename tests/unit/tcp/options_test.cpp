#include "raw_peer.hpp"

namespace rnic::testing {
namespace {

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
  p.expect({.ack = kIrs + 101, .ts_echo = 201});
  EXPECT_EQ(p.stack.counters().paws_rejected, 0u);
}

TEST(Options, TheSynAckOfASimultaneousOpenHasWhatThePeerOffered) {
  RawPeer p(tcp::Config{});
  compare(p.connect(), {.flags = flag::kSyn,
                        .options = kinds::kMss | kinds::kWindowScale | kinds::kSackPermitted |
                                   kinds::kTimestamps});
  p.inject({.seq = kIrs, .flags = flag::kSyn, .options = option_mss(1000)});
  p.expect({.flags = flag::kSyn | flag::kAck, .options = kinds::kMss});

  RawPeer q(tcp::Config{});
  q.connect();
  q.inject({.seq = kIrs,
            .flags = flag::kSyn,
            .options = option_mss(1000) + option_sack_permitted() + option_timestamps(5, 0)});
  q.expect({.flags = kSynAck, .options = kinds::kMss | kinds::kSackPermitted | kinds::kTimestamps});
}

// RFC 7323 s.2.2: the window of a segment with SYN is not scaled, also where it acknowledges ours.
TEST(Options, TheWindowOfASynAckIsNotScaledInASimultaneousOpen) {
  tcp::Config config = RawPeer::bare();
  config.window_scaling = true;
  RawPeer p(config);
  p.connect();
  const std::vector<uint8_t> options = option_mss(1460) + std::vector<uint8_t>{1, 3, 3, 4};
  p.inject({.seq = kIrs, .flags = flag::kSyn, .window = 4000, .options = options});
  p.expect({.flags = flag::kSyn | flag::kAck, .ack = kIrs + 1});
  p.inject({.seq = kIrs,
            .ack = kIss + 1,
            .flags = flag::kSyn | flag::kAck,
            .window = 4000,
            .options = options});
  ASSERT_TRUE(p.user.is_established);
  EXPECT_EQ(p.stack.info(*p.user.stream, p.now)->snd_wnd, 4000u);
}

TEST(Options, AResetOfAConnectionHasItsTimestamps) {
  tcp::Config config = RawPeer::bare();
  config.timestamps = true;
  RawPeer p(config);
  p.accept(option_mss(1000) + option_timestamps(100, 0), option_timestamps(200, 0));
  p.data(0, 0);
  p.send_record(100);
  const Segment data = p.next();
  p.now += milliseconds(700);
  p.user.stream->abort();
  p.stack.output(p.now);
  p.expect({.flags = flag::kRst | flag::kAck,
            .ts_value = data.parsed.timestamps->value + 700,
            .ts_echo = 200});
}

TEST(Options, TheFirstOldPartOfASegmentIsReported_TCP_2883_4_01) {
  tcp::Config config = RawPeer::bare();
  config.sack = true;
  RawPeer p(config);
  p.accept(option_mss(1460) + option_sack_permitted());
  const auto first_block = [&p] {
    const Segment s = p.next();
    EXPECT_GE(s.parsed.sack_count, 1u);
    return std::pair(s.parsed.sack[0].left.value - kIrs - 1,
                     s.parsed.sack[0].right.value - kIrs - 1);
  };
  using Block = std::pair<uint32_t, uint32_t>;
  p.data(0, 1000, flag::kPsh);
  p.next();
  p.data(500, 1000);  // old at its begin (section 4.2.1)
  EXPECT_EQ(first_block(), Block(500, 1000));
  p.data(2000, 500);
  p.next();
  p.data(3000, 500);
  p.next();
  p.data(1500, 3000);  // two old parts inside: the first one (section 4.2.2)
  EXPECT_EQ(first_block(), Block(2000, 2500));
  p.data(5000, 500);
  p.next();
  p.data(5000, 900);  // ahead of order, old at its begin
  EXPECT_EQ(first_block(), Block(5000, 5500));
  p.data(4800, 400);  // old at its end
  EXPECT_EQ(first_block(), Block(5000, 5200));
  EXPECT_TRUE(p.user.clean());
}

}  // namespace
}  // namespace rnic::testing

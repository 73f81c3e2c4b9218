// When an ACK opens the congestion window of a connection.
#include "raw_peer.hpp"

namespace rnic::testing {
namespace {

// docs/decisions/0011, as Linux has it: the most that was in flight at once counts until what was
// in flight then is acknowledged. Reached once more on the way it does not count for longer: an
// application that has come down to two segments of twelve opens nothing.
TEST(SlowStart, APeakThatIsOnlyReachedAgainDoesNotLastLonger) {
  tcp::Config config = RawPeer::bare();
  config.congestion_control = CongestionControl::NewReno;
  config.growth_limit_segments = 1;
  RawPeer p(config);
  p.accept();
  const auto send = [&](int segments) {
    for (int i = 0; i < segments; ++i) p.user.queue(kMss);
    p.stack.output(p.now);
  };
  const auto cwnd_after_ack_of = [&](uint32_t segments) {
    p.now += milliseconds(1);
    p.inject({.seq = kIrs + 1, .ack = kIss + 1 + segments * kMss, .flags = flag::kAck});
    return p.stack.info(*p.user.stream, p.now)->cwnd / kMss;
  };
  send(9);
  EXPECT_EQ(cwnd_after_ack_of(1), 11u);
  send(1);  // nine are in flight again
  EXPECT_EQ(cwnd_after_ack_of(9), 12u);
  send(1);  // two
  EXPECT_EQ(cwnd_after_ack_of(11), 12u);
}

// RFC 9438 s.4.2: in congestion avoidance cwnd moves with the ACK that makes a quarter of it up,
// not with a later one.
TEST(Cubic, TheAckThatMakesAQuarterUpMovesTheWindow) {
  tcp::Config config = RawPeer::bare();
  config.congestion_control = CongestionControl::Cubic;
  RawPeer p(config);
  p.accept(option_mss(1000));
  uint64_t una = 0;
  const auto ack = [&](uint32_t octets) {
    una += octets;
    p.now += milliseconds(1);
    p.inject({.seq = kIrs + 1, .ack = kIss + 1 + static_cast<uint32_t>(una), .flags = flag::kAck});
    return p.stack.info(*p.user.stream, p.now)->cwnd;
  };
  for (int i = 0; i < 60; ++i) p.user.queue(1000);
  p.stack.output(p.now);
  for (int i = 0; i < 3; ++i) ack(0);  // the first one is lost
  ack(static_cast<uint32_t>(p.stack.info(*p.user.stream, p.now)->snd_nxt));
  ASSERT_EQ(p.stack.info(*p.user.stream, p.now)->loss_state, tcp::LossState::Open);
  const uint32_t begin = ack(1000);  // of a stage
  EXPECT_FALSE(p.stack.info(*p.user.stream, p.now)->slow_start);
  EXPECT_EQ(ack(begin / 4 - 1), begin);
  const uint32_t grown = ack(1);
  EXPECT_GT(grown, begin);
  EXPECT_GT(ack(grown / 4), grown);
}

}  // namespace
}  // namespace rnic::testing

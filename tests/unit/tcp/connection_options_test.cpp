#include "pair.hpp"
#include "raw_peer.hpp"
#include "tcp/byte_stream.hpp"

namespace rnic::testing {
namespace {

TEST(Options, DscpAndHopLimitOfEverySegment_TCP_9293_3_9_2_01) {
  RawPeer p;
  ASSERT_TRUE(p.stack.unlisten({RawPeer::kUs, RawPeer::kOurPort}).has_value());
  tcp::ConnectionOptions options = p.stack.default_options();
  options.dscp = 46;
  options.hop_limit = 3;
  ASSERT_TRUE(p.stack.listen({RawPeer::kUs, RawPeer::kOurPort}, p.acceptor, options).has_value());
  p.acceptor.next.push_back(&p.user);
  const Expected marked{.dscp = 46, .hop_limit = 3};
  const Expected text{.flags = kPshAck, .payload = 100, .dscp = 46, .hop_limit = 3};
  p.inject({.seq = kIrs, .flags = flag::kSyn, .options = option_mss(1460)});
  p.expect({.flags = flag::kSyn | flag::kAck, .dscp = 46, .hop_limit = 3});
  p.inject({.seq = kIrs + 1, .ack = kIss + 1, .flags = flag::kAck});
  p.data(0, 10, flag::kPsh);
  p.expect(marked);  // ACK
  p.send_record(100);
  p.expect(text);
  p.wait(seconds(1));
  p.expect(text);  // a retransmission
  options.dscp = 0;
  options.hop_limit = 0;
  ASSERT_TRUE(p.stack.set_options(*p.user.stream, options, p.now).has_value());
  EXPECT_EQ(p.stack.options(*p.user.stream), options);
  p.egress.sent.clear();
  p.data(10, 10, flag::kPsh);
  p.stack.output(p.now);  // behind text of ours the ACK waits for one turn
  p.expect({});
}

TEST(Options, ABadValueIsNamedAndChangesNothing) {
  Pair p;
  ASSERT_TRUE(p.open());
  const tcp::ConnectionOptions before = p.link.a.options(*p.a.stream);
  tcp::ConnectionOptions o = before;
  o.dscp = 64;
  const auto status = p.link.a.set_options(*p.a.stream, o, p.link.now);
  ASSERT_FALSE(status.has_value());
  EXPECT_NE(status.error().message.find("dscp 64"), std::string::npos);
  o = before;
  o.max_segment = 10;
  EXPECT_FALSE(p.link.a.set_options(*p.a.stream, o, p.link.now).has_value());
  o = before;
  o.user_timeout = seconds(0);
  EXPECT_FALSE(p.link.a.set_options(*p.a.stream, o, p.link.now).has_value());
  o = before;
  o.keep_alive = true;
  o.keep_alive_count = 1;  // MUST-29
  EXPECT_FALSE(p.link.a.set_options(*p.a.stream, o, p.link.now).has_value());
  RecordUser u{1, 2};
  EXPECT_FALSE(p.link.a.connect({kAddressA, 0}, {kAddressB, kPort}, u, o, p.link.now).has_value());
  EXPECT_EQ(p.link.a.options(*p.a.stream), before);
}

TEST(Options, TheLargestSegmentIsTheUsersChoice) {
  Pair p;
  tcp::ConnectionOptions o = p.link.a.default_options();
  o.max_segment = 700;
  o.congestion_control = CongestionControl::NewReno;
  auto stream = p.link.a.connect({kAddressA, 0}, {kAddressB, kPort}, p.a, o, p.link.now);
  ASSERT_TRUE(stream.has_value());
  p.a.stream = *stream;
  ASSERT_TRUE(p.link.run_until([&] { return p.b.is_established; }, seconds(1)));
  EXPECT_EQ(p.a.established_emss, 700u);
  uint32_t largest = 0;
  p.link.seen = [&](const LinkFrame& f) { largest = std::max(largest, f.payload()); };
  for (int i = 0; i < 20; ++i) p.a.queue(3000);
  for (int i = 0; i < 20; ++i) p.b.queue(3000);
  ASSERT_TRUE(p.drain());
  EXPECT_EQ(largest, 700u);  // ours by choice, the peer's by our MSS option
  o.max_segment = 0;
  ASSERT_TRUE(p.link.a.set_options(*p.a.stream, o, p.link.now).has_value());
  EXPECT_EQ(p.a.changed_emss, 1448u);  // told before the next pull
}

tcp::ConnectionOptions with_keep_alive(const tcp::Stack& stack) {
  tcp::ConnectionOptions o = stack.default_options();
  o.keep_alive = true;
  o.keep_alive_idle = seconds(60);
  o.keep_alive_interval = seconds(10);
  o.keep_alive_count = 3;
  return o;
}

/// An established connection that is kept alive.
struct KeptAlivePeer : RawPeer {
  KeptAlivePeer() {
    accept();
    EXPECT_TRUE(stack.set_options(*user.stream, with_keep_alive(stack), now).has_value());
  }
};

TEST(KeepAlive, IsOffByDefaultAndSentWhenIdle_TCP_9293_3_8_4_01) {
  EXPECT_FALSE(tcp::Config{}.keep_alive);
  EXPECT_GE(tcp::Config{}.keep_alive_idle, std::chrono::hours(2));
  Pair p;
  ASSERT_TRUE(p.open());
  p.link.run(std::chrono::hours(24));
  EXPECT_EQ(p.link.a.counters().keep_alive_probes, 0u);
  ASSERT_TRUE(p.link.a.set_options(*p.a.stream, with_keep_alive(p.link.a), p.link.now).has_value());
  p.link.run(seconds(1));
  EXPECT_EQ(p.link.a.counters().keep_alive_probes, 1u);  // idle for long already
  for (int i = 0; i < 8; ++i) {                          // traffic: no probes
    p.b.queue(100);
    p.link.run(seconds(30));
  }
  EXPECT_EQ(p.link.a.counters().keep_alive_probes, 1u);
  p.link.run(seconds(605));
  EXPECT_EQ(p.link.a.counters().keep_alive_probes, 11u);  // answered, one each idle time
  EXPECT_FALSE(p.a.how_ended);
  EXPECT_TRUE(p.b.clean());
}

TEST(KeepAlive, EndsAfterSeveralUnansweredProbesOnly_TCP_9293_3_8_4_02) {
  KeptAlivePeer p;
  p.wait(seconds(61));
  p.expect({.seq = kIss, .payload = 0});  // SND.NXT - 1
  p.wait(seconds(10));
  p.next();
  EXPECT_FALSE(p.user.how_ended);  // one without an answer
  p.inject({.seq = kIrs + 1, .ack = kIss + 1, .flags = flag::kAck});
  p.wait(seconds(59));
  EXPECT_TRUE(p.silent());
  p.wait(seconds(31));
  EXPECT_EQ(p.egress.sent.size(), 3u);
  EXPECT_FALSE(p.user.how_ended);
  p.wait(seconds(11));
  ASSERT_TRUE(p.user.how_ended);
  EXPECT_EQ(*p.user.how_ended, StreamEnd::TimedOut);
  EXPECT_EQ(p.stack.counters().keep_alive_timeouts, 1u);
  EXPECT_EQ(p.egress.sent.back().flags & flag::kRst, flag::kRst);
}

// A peer that has closed its half is probed as before: ours may stay open.
TEST(KeepAlive, GoesOnBehindThePeersFin_TCP_9293_3_8_4_01) {
  KeptAlivePeer p;
  p.inject({.seq = kIrs + 1, .ack = kIss + 1, .flags = kFinAck});
  EXPECT_TRUE(p.user.peer_has_finished);
  p.expect({.ack = kIrs + 2});
  for (int i = 0; i < 3; ++i) {
    p.wait(seconds(61));
    ASSERT_FALSE(p.user.how_ended);
    p.expect({.flags = flag::kAck, .seq = kIss});  // SND.NXT - 1
    p.inject({.seq = kIrs + 2, .ack = kIss + 1, .flags = flag::kAck});
    EXPECT_TRUE(p.silent());
  }
  EXPECT_EQ(p.stack.counters().keep_alive_probes, 3u);
  EXPECT_EQ(p.stack.counters().connections_timed_out, 0u);
}

TEST(KeepAlive, AProbeThatThePortDidNotTakeGoesOutLater) {
  KeptAlivePeer p;
  p.egress.full = true;
  p.wait(seconds(61));
  EXPECT_EQ(p.stack.counters().keep_alive_probes, 0u);
  EXPECT_GT(p.stack.counters().send_waits, 0u);
  p.egress.full = false;
  p.stack.output(p.now);
  EXPECT_EQ(p.stack.counters().keep_alive_probes, 1u);
  p.expect({.seq = kIss});
  EXPECT_TRUE(p.silent());
}

// What anybody can send who knows the four numbers of a connection is no sign of the peer's life.
TEST(KeepAlive, ForgedSegmentsDoNotPutItOff) {
  KeptAlivePeer p;
  for (int second = 0; second < 200 && !p.user.how_ended; ++second) {
    p.wait(seconds(1));
    const uint32_t far = kIrs + 0x40000000;
    p.inject({.seq = far, .ack = kIss + 1, .flags = flag::kAck});
    p.inject({.seq = far, .ack = kIss + 1, .flags = flag::kAck, .payload = 100});
    p.inject({.seq = kIrs + 50, .flags = flag::kRst});
    p.inject({.seq = kIrs + 50, .flags = flag::kSyn});
    p.inject({.seq = kIrs + 1, .ack = kIss + 0x40000000, .flags = flag::kAck});
  }
  ASSERT_TRUE(p.user.how_ended);
  EXPECT_EQ(p.stack.counters().keep_alive_timeouts, 1u);
}

TEST(Options, R1InformsAndR2EndsByConnection_TCP_9293_3_8_3_01) {
  RawPeer p;
  p.accept();
  tcp::ConnectionOptions o = p.stack.default_options();
  EXPECT_GE(o.user_timeout, seconds(100));
  o.user_timeout = seconds(20);
  ASSERT_TRUE(p.stack.set_options(*p.user.stream, o, p.now).has_value());
  p.send_record(100);
  const base::Now start = p.now;
  while (!p.user.how_ended && p.now - start < seconds(100)) p.wait(milliseconds(100));
  EXPECT_EQ(*p.user.how_ended, StreamEnd::TimedOut);
  EXPECT_GE(p.now - start, seconds(20));
  EXPECT_LT(p.now - start, seconds(60));
  EXPECT_EQ(p.stack.counters().path_doubts, 1u);
  EXPECT_EQ(p.egress.doubted, std::vector{RawPeer::kPeer});
}

TEST(Options, UnansweredWindowProbesEndByTheUserTimeout) {
  RawPeer p;
  p.accept(option_mss(1460), {}, 0);
  tcp::ConnectionOptions o = p.stack.default_options();
  o.user_timeout = seconds(30);
  ASSERT_TRUE(p.stack.set_options(*p.user.stream, o, p.now).has_value());
  p.wait(seconds(600));
  p.send_record(100);
  for (int i = 0; i < 300; ++i) {  // answered: it stays (RFC 9293 s.3.8.6.1)
    p.wait(seconds(1));
    if (p.silent()) continue;
    p.egress.sent.clear();
    p.inject({.seq = kIrs + 1, .ack = kIss + 1, .flags = flag::kAck, .window = 0});
    ASSERT_TRUE(p.silent()) << int{p.egress.sent.front().flags} << " " << p.egress.sent.front().seq
                            << " " << p.egress.sent.front().payload;
  }
  EXPECT_FALSE(p.user.how_ended);
  p.wait(seconds(400));
  ASSERT_TRUE(p.user.how_ended);
  EXPECT_EQ(*p.user.how_ended, StreamEnd::TimedOut);
}

/// A plain stream on the stack's side of a RawPeer.
struct FirstOnly final : llp::Acceptor {
  llp::StreamUser* accept(llp::Stream& s, const Endpoint&, const Endpoint&, base::Now) override {
    user.attach(s);
    return &user;
  }
  tcp::ByteStream user{65536};
};

struct StreamPeer {
  explicit StreamPeer(const tcp::ConnectionOptions& o) {
    RNIC_CHECK(p.stack.unlisten({RawPeer::kUs, RawPeer::kOurPort}).has_value());
    RNIC_CHECK(p.stack.listen({RawPeer::kUs, RawPeer::kOurPort}, one, o).has_value());
    p.inject({.seq = kIrs, .flags = flag::kSyn, .options = option_mss(1000)});
    p.next();
    p.inject({.seq = kIrs + 1, .ack = kIss + 1, .flags = flag::kAck});
  }
  void write(uint32_t octets) {
    const std::vector<uint8_t> data(octets, 7);
    one.user.write(data);
    p.stack.output(p.now);
  }
  FirstOnly one;
  RawPeer p;
};

TEST(Nagle, HoldsBackShortSegmentsUntilAcknowledged_TCP_9293_3_7_4_01) {
  tcp::ConnectionOptions o;
  o.nagle = true;
  StreamPeer s(o);
  s.write(10);
  s.p.expect({.flags = kPshAck, .payload = 10});  // nothing in flight
  for (int i = 0; i < 5; ++i) s.write(10);
  EXPECT_TRUE(s.p.silent());
  s.p.inject({.seq = kIrs + 1, .ack = kIss + 11, .flags = flag::kAck});
  s.p.expect({.flags = kPshAck, .payload = 50});
  s.write(999);
  EXPECT_TRUE(s.p.silent());
  s.write(1);
  s.p.expect({.flags = kPshAck, .payload = 1000});  // a full segment never waits
  s.write(20);
  EXPECT_TRUE(s.p.silent());
  s.one.user.close();  // nothing more will come to fill it
  s.p.stack.output(s.p.now);
  s.p.expect({.flags = kFinAck | flag::kPsh, .payload = 20});
}

TEST(Nagle, CanBeOff_TCP_9293_3_7_4_01) {
  StreamPeer s(tcp::ConnectionOptions{});
  for (int i = 0; i < 5; ++i) {
    s.write(10);
    s.p.expect({.flags = kPshAck, .payload = 10});
  }
}

TEST(HalfDuplexClose, AnswersWhatNobodyReadsWithRst_TCP_9293_3_6_1_01) {
  tcp::ConnectionOptions o;
  o.half_duplex_close = true;
  {  // unread octets at close()
    StreamPeer s(o);
    s.p.data(0, 100);
    s.one.user.close();
    s.p.stack.output(s.p.now);
    EXPECT_EQ(s.p.egress.sent.back().flags & flag::kRst, flag::kRst);
    EXPECT_EQ(s.one.user.how_ended(), StreamEnd::Aborted);
  }
  {  // octets after close()
    StreamPeer s(o);
    s.one.user.close();
    s.p.stack.output(s.p.now);
    s.p.expect({.flags = kFinAck});
    s.p.data(0, 100);
    // A number without the ACK flag means nothing.
    compare(s.p.egress.sent.back(), {.flags = flag::kRst, .ack = 0});
    EXPECT_EQ(s.p.stack.counters().half_duplex_resets, 1u);
  }
  {  // without the option they are received, acknowledged and handed up until the FIN
    StreamPeer s(tcp::ConnectionOptions{});
    s.p.data(0, 100);
    s.one.user.close();
    s.p.stack.output(s.p.now);
    s.p.data(100, 100, flag::kPsh);
    EXPECT_EQ(s.one.user.readable(), 200u);
    EXPECT_EQ(s.p.egress.sent.back().ack, kIrs + 201);
    s.p.wait(seconds(20));
    EXPECT_EQ(s.one.user.how_ended(), StreamEnd::TimedOut);  // tcp.close_timeout
  }
}

}  // namespace
}  // namespace rnic::testing

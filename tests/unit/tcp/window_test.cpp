#include "base/prng.hpp"
#include "pair.hpp"
#include "raw_peer.hpp"
#include "tcp/byte_stream.hpp"
#include "unit/tcp/inside.hpp"

namespace rnic::testing {
namespace {

/// Gives its one stream to the next connection.
class StreamAcceptor final : public llp::Acceptor {
 public:
  explicit StreamAcceptor(tcp::ByteStream& user) : user_(user) {}
  llp::StreamUser* accept(llp::Stream& stream, const Endpoint&, const Endpoint&,
                          base::Now) override {
    user_.attach(stream);
    return &user_;
  }
  [[nodiscard]] uint32_t first_room(const Endpoint&) const override { return user_.receive_room(); }

 private:
  tcp::ByteStream& user_;
};

TEST(Window, AZeroWindowIsProbedAndSurvived_TCP_9293_3_8_6_1_01) {
  Pair p;
  ASSERT_TRUE(p.open());
  p.b.room = 0;
  for (int i = 0; i < 200; ++i) p.a.queue(1448);
  p.link.run(seconds(200));  // far longer than R2
  EXPECT_FALSE(p.a.how_ended);
  EXPECT_LE(p.b.ordered_to, 65535u);
  EXPECT_GE(p.link.a.counters().window_probes, 5u);
  EXPECT_LE(p.link.a.counters().window_probes, 20u);  // backed off
  p.b.room = 4u << 20;
  p.b.stream->room_grew();
  ASSERT_TRUE(p.drain());
  EXPECT_TRUE(p.b.clean());
}

// The same with nothing but a FIN to send.
TEST(Window, AShutWindowBeforeTheFinIsNoReasonToReset_TCP_9293_3_8_6_1_01) {
  RawPeer p;
  p.accept();
  p.send_record(1000);
  p.egress.sent.clear();
  p.user.stream->close();
  const Segment shut{.seq = kIrs + 1, .ack = kIss + 1001, .flags = flag::kAck, .window = 0};
  p.inject(shut);
  for (int second = 0; second < 200; ++second) {  // longer than R2
    p.wait(seconds(1));
    while (!p.silent()) {
      ASSERT_EQ(p.next().flags, flag::kFin | flag::kAck) << second;
      p.inject(shut);
    }
  }
  // It opens: the FIN goes again before the close time-out.
  p.inject({.seq = kIrs + 1, .ack = kIss + 1001, .flags = flag::kAck, .window = 1000});
  p.wait(seconds(2));
  p.expect({.flags = flag::kFin | flag::kAck});
  p.inject({.seq = kIrs + 1, .ack = kIss + 1002, .flags = flag::kFin | flag::kAck});
  EXPECT_EQ(p.user.how_ended, StreamEnd::Closed);
}

// The other side of it: a peer that is silent is given up after R2, window shut or not.
TEST(Window, AFinBeforeAShutWindowThatNobodyAnswersEnds) {
  RawPeer p;
  p.accept();
  p.send_record(1000);
  p.user.stream->close();
  p.inject({.seq = kIrs + 1, .ack = kIss + 1001, .flags = flag::kAck, .window = 0});
  p.wait(seconds(300));
  EXPECT_EQ(p.user.how_ended, StreamEnd::TimedOut);
}

TEST(Window, TheBackOffOfProbesEndsWithThem) {
  RawPeer p;
  p.accept();
  p.send_record(1000);
  p.egress.sent.clear();
  p.now += milliseconds(10);
  const Segment shut{.seq = kIrs + 1, .ack = kIss + 1001, .flags = flag::kAck, .window = 0};
  p.inject(shut);
  p.send_record(1000);
  for (int second = 0; second < 120; ++second) {
    p.wait(seconds(1));
    while (!p.silent()) {
      p.next();
      p.inject(shut);
    }
  }
  EXPECT_GT(p.stack.info(*p.user.stream, p.now)->window_probes, 2u);
  p.inject({.seq = kIrs + 1, .ack = kIss + 1001, .flags = flag::kAck});
  EXPECT_EQ(p.stack.info(*p.user.stream, p.now)->window_probes, 0u) << "the window is open";
  p.expect({.flags = kPshAck, .seq = kIss + 1001, .payload = 1000});  // and is lost
  p.wait(seconds(1));
  ASSERT_FALSE(p.silent());
  p.expect({.flags = kPshAck, .seq = kIss + 1001, .payload = 1000});
  EXPECT_EQ(p.stack.counters().black_holes, 0u);
}

// RFC 9293 s.3.8.6.1 asks for one octet; before the first one there is none to send again, and the
// SYN's number is no octet.
TEST(Window, BeforeTheFirstOctetAProbeIsEmpty_TCP_9293_3_8_6_1_01) {
  RawPeer p;
  p.accept(option_mss(1460), {}, 0);
  p.send_record(100);
  ASSERT_TRUE(p.silent());
  while (p.silent()) p.wait(milliseconds(100));
  p.expect({.seq = kIss, .payload = 0});
  p.inject({.seq = kIrs + 1, .ack = kIss + 1, .flags = flag::kAck});
  p.expect({.flags = kPshAck, .payload = 100u});
}

// One probe may get lost: however short the user's time-out, a second one has the time that its
// back-off gives it, and its answer keeps the connection.
TEST(Window, ASecondProbeHasItsTimeToBeAnswered_TCP_9293_3_8_6_1_01) {
  for (const bool answered : {true, false}) {
    RawPeer p;
    p.accept(option_mss(1460), {}, 0);
    const base::Duration rto = tcp::Inside(*p.user.stream).rto.rto();
    tcp::ConnectionOptions options = p.stack.default_options();
    options.user_timeout = 2 * rto;
    ASSERT_TRUE(p.stack.set_options(*p.user.stream, options, p.now).has_value());
    p.send_record(100);
    p.wait(rto + rto / 2);
    EXPECT_EQ(p.stack.counters().window_probes, 1u);
    p.wait(2 * rto);
    EXPECT_EQ(p.stack.counters().window_probes, 2u);
    EXPECT_FALSE(p.user.how_ended);
    if (answered) p.inject({.seq = kIrs + 1, .ack = kIss + 1, .flags = flag::kAck, .window = 0});
    p.wait(4 * rto);
    EXPECT_EQ(p.user.how_ended.has_value(), !answered);
  }
}

TEST(Window, ALostWindowUpdateDoesNotHang) {
  Pair p;
  ASSERT_TRUE(p.open());
  p.b.room = 0;
  for (int i = 0; i < 200; ++i) p.a.queue(1448);
  p.link.run(seconds(5));
  p.b.room = 4u << 20;
  p.link.hook = [done = false](const LinkFrame& f) mutable {
    const bool drop = !f.from_a && !done;
    done |= drop;
    return Fate{.drop = drop};
  };
  p.b.stream->room_grew();
  ASSERT_TRUE(p.drain());
}

class SmallWindow : public ::testing::TestWithParam<uint32_t> {};

// A window that never holds a record: it is cut, from one copy, without deadlock.
TEST_P(SmallWindow, RecordsAreCut_TCP_9293_3_8_6_2_01) {
  tcp::Config small;
  small.receive_window = GetParam();
  Pair p({}, small);
  p.b.room = GetParam();
  ASSERT_TRUE(p.open());
  base::Prng random(3);
  p.link.hook = [&](const LinkFrame&) { return Fate{.drop = random.chance(0.02)}; };
  for (int i = 0; i < 10; ++i) p.a.queue(1448);
  for (int i = 0; i < 20; ++i) p.a.queue(60);
  ASSERT_TRUE(p.drain(seconds(600)));
  EXPECT_TRUE(p.b.clean());
  EXPECT_GE(p.link.a.counters().resegmented_records, 10u);
  ASSERT_TRUE(p.close(seconds(120)));
  EXPECT_TRUE(p.everything_returned());
}
INSTANTIATE_TEST_SUITE_P(Window, SmallWindow, ::testing::Values(100, 500, 1000, 1447));

// TCP-7323-2.4-01-b, TCP-7323-2.4-01-c: nothing new goes past the edge, and what has been inside it
// once is repeated whatever the window is.
TEST(Window, AShrunkWindowIsRespected_TCP_9293_3_8_6_01) {
  RawPeer p;
  p.accept();
  for (int i = 0; i < 30; ++i) p.user.queue(1460);
  p.stack.output(p.now);
  const size_t flight = p.egress.sent.size();
  EXPECT_EQ(flight, 10u);  // RFC 6928
  p.egress.sent.clear();
  // One is acknowledged, and the window's right edge moves left of what is in flight.
  p.inject({.seq = kIrs + 1, .ack = kIss + 1 + 1460, .flags = flag::kAck, .window = 2000});
  p.inject({.seq = kIrs + 1, .ack = kIss + 1 + 2920, .flags = flag::kAck, .window = 1000});
  EXPECT_TRUE(p.silent());
  p.wait(seconds(1));
  ASSERT_FALSE(p.silent());
  // Old data is retransmitted: all of the segment, of which the window holds a part.
  p.expect({.seq = kIss + 1 + 2920, .payload = 1460});
}

// The sender's half: new octets go by the latest window (3); what was inside one when it was sent
// is sent again whatever the latest says (4).
TEST(Window, AShrunkWindowHoldsBackNewOctetsOnly_TCP_7323_2_4_01) {
  RawPeer p;
  p.accept();
  for (int i = 0; i < 3; ++i) p.user.queue(1460);
  p.stack.output(p.now);
  p.egress.sent.clear();
  p.inject({.seq = kIrs + 1, .ack = kIss + 1, .flags = flag::kAck, .window = 500});
  p.send_record(100);
  EXPECT_TRUE(p.silent());
  p.wait(seconds(1) + milliseconds(100));
  ASSERT_FALSE(p.silent());
  p.expect({.seq = kIss + 1, .payload = 1460});
  while (!p.silent()) EXPECT_LT(p.next().seq, kIss + 1 + 4380);  // nothing new
  // What is acknowledged makes room by the latest window, not by an older one.
  p.inject({.seq = kIrs + 1, .ack = kIss + 1 + 4380, .flags = flag::kAck, .window = 99});
  EXPECT_TRUE(p.silent());
  p.inject({.seq = kIrs + 1, .ack = kIss + 1 + 4380, .flags = flag::kAck, .window = 100});
  p.expect({.flags = kPshAck, .payload = 100u});
}

// A peer that has filled our window gives its ACKs the sequence number of the window's end. They
// count, whatever is missing of the window; a RST there does not, nor does anything beyond.
TEST(Window, AnAckFromTheEndOfAFullWindowCounts) {
  RawPeer p;
  p.accept();
  p.send_record(1000);
  constexpr uint32_t kWhole = 65535;
  for (uint32_t at = 1000; at < kWhole; at += 1000) p.data(at, std::min(1000u, kWhole - at));
  p.egress.sent.clear();
  p.inject({.seq = kIrs + 1 + kWhole, .ack = kIss + 1, .flags = flag::kRst | flag::kAck});
  EXPECT_TRUE(p.silent());
  EXPECT_FALSE(p.user.how_ended);
  p.inject({.seq = kIrs + 2 + kWhole, .ack = kIss + 1 + 1000, .flags = flag::kAck});
  p.expect({.ack = kIrs + 1});
  EXPECT_EQ(p.user.released_to, 0u);
  p.inject({.seq = kIrs + 1 + kWhole, .ack = kIss + 1 + 1000, .flags = flag::kAck});
  EXPECT_EQ(p.user.released_to, 1000u);
  EXPECT_TRUE(p.silent()) << "an ACK for an ACK";
  // Nor has a FIN another place, which takes no room.
  p.inject({.seq = kIrs + 1 + kWhole, .ack = kIss + 1 + 1000, .flags = kFinAck});
  p.data(0, 1000);
  EXPECT_EQ(p.user.ordered_to, kWhole);
  EXPECT_TRUE(p.user.peer_has_finished);
}

// Two ends that have filled each other's windows, each with a hole: their ACKs stand at the end.
// Answered, they would draw ACKs of the same kind, until the time-out.
TEST(Window, TwoFullWindowsWithAHoleDoNotAnswerEachOther) {
  for (const bool sack : {true, false}) {
    tcp::Config config;
    config.sack = sack;
    config.receive_window = 3 * 1448;
    Pair p(config, config);
    p.a.room = p.b.room = config.receive_window;
    ASSERT_TRUE(p.open());
    bool dropped[2] = {};
    uint32_t frames = 0;
    p.link.hook = [&](const LinkFrame& f) {
      ++frames;
      return Fate{.drop = !std::exchange(dropped[f.from_a ? 1 : 0], true)};
    };
    for (int i = 0; i < 30; ++i) {
      p.a.queue(1448);
      p.b.queue(1448);
    }
    ASSERT_TRUE(p.drain());
    EXPECT_LT(frames, 130u);
    for (const tcp::Stack* stack : {&p.link.a, &p.link.b}) {
      EXPECT_EQ(stack->counters().unacceptable, 0u);
      EXPECT_EQ(stack->counters().retransmitted_segments, 1u);
      EXPECT_EQ(stack->counters().timeouts, sack ? 0u : 1u);
    }
  }
}

// A retransmission carries old text and the newest ACK: where it moves SND.UNA, its window counts.
TEST(Window, TheWindowOfAnAckThatMovesUnaCountsWhateverItsText) {
  RawPeer p;
  p.accept();
  p.data(0, 100);
  p.data(100, 100);
  for (int i = 0; i < 4; ++i) p.user.queue(1000);
  p.stack.output(p.now);
  p.egress.sent.clear();
  // The first segment again, late, with the ACK of 2000 octets and the window that is left then.
  p.inject(
      {.seq = kIrs + 1, .ack = kIss + 2001, .flags = flag::kAck, .window = 2500, .payload = 300});
  p.egress.sent.clear();
  for (int i = 0; i < 4; ++i) p.user.queue(1000);
  p.stack.output(p.now);
  while (!p.silent()) {
    const Segment s = p.next();
    EXPECT_LE(s.seq + s.payload, kIss + 2001 + 2500);
  }
}

// Less than half of the largest window waits for the override timer (4).
TEST(Window, TheSillyWindowOverrideSplitsARecord_TCP_9293_3_8_6_2_01) {
  RawPeer p;
  p.accept();
  p.inject({.seq = kIrs + 1, .ack = kIss + 1, .flags = flag::kAck, .window = 500});
  p.send_record(1460);
  EXPECT_TRUE(p.silent());
  p.wait(milliseconds(300));
  p.expect({.payload = 500u});
  p.egress.sent.clear();
  p.inject({.seq = kIrs + 1, .ack = kIss + 501, .flags = flag::kAck, .window = 5000});
  p.expect({.flags = kPshAck, .seq = kIss + 501, .payload = 960});
  EXPECT_EQ(p.user.pulls, 2u);  // once for the record, once to learn that there is no more
  EXPECT_EQ(p.user.rebuilds, 0u);
}

/// It lets the last octet of each piece of a record go with the next segment.
class CuttingUser final : public RecordUser {
 public:
  using RecordUser::RecordUser;
  [[nodiscard]] uint32_t cut(base::ByteView piece) override {
    asked.push_back(static_cast<uint32_t>(piece.size()));
    return std::max(static_cast<uint32_t>(piece.size()) - 1, 1u);
  }
  mutable std::vector<uint32_t> asked;
};

// The user says where a record is cut that a small window takes a part of; of one that it takes
// whole there is nothing to say.
TEST(Window, TheUserSaysWhereARecordIsCut) {
  RawPeer p;
  CuttingUser user(11, 22);
  p.acceptor.next.push_back(&user);
  p.inject({.seq = kIrs, .flags = flag::kSyn, .window = 600, .options = option_mss(1460)});
  p.expect({.flags = flag::kSyn | flag::kAck});
  p.inject({.seq = kIrs + 1, .ack = kIss + 1, .flags = flag::kAck, .window = 600});
  ASSERT_TRUE(user.is_established);
  user.queue(500);
  p.stack.output(p.now);
  p.expect({.flags = kPshAck, .payload = 500u});
  EXPECT_TRUE(user.asked.empty());
  const auto take = [&](uint32_t offset) {
    p.inject({.seq = kIrs + 1, .ack = kIss + 1 + offset, .flags = flag::kAck, .window = 600});
  };
  take(500);
  user.queue(1000);
  p.stack.output(p.now);
  p.expect({.octets = octets_at(500, 599, 11)});
  EXPECT_EQ(user.asked, std::vector<uint32_t>{600});
  EXPECT_EQ(p.stack.counters().resegmented_records, 1u);
  take(500 + 599);
  p.expect({.seq = kIss + 1 + 500 + 599, .octets = octets_at(500 + 599, 400, 11)});
}

// The back-off of the probes was for the shut window: a piece that is small does not wait for it.
TEST(Window, TheOverrideStartsAnewWhenAShutWindowOpensALittle) {
  RawPeer p;
  p.accept();
  p.inject({.seq = kIrs + 1, .ack = kIss + 1, .flags = flag::kAck, .window = 0});
  p.send_record(1460);
  p.wait(seconds(20));
  EXPECT_GE(p.stack.counters().window_probes, 5u);
  p.egress.sent.clear();
  p.inject({.seq = kIrs + 1, .ack = kIss + 1, .flags = flag::kAck, .window = 500});
  EXPECT_TRUE(p.silent()) << "less than half of what the peer has offered before";
  p.wait(p.stack.info(*p.user.stream, p.now)->rto + milliseconds(1));
  p.expect({.payload = 500u});
}

// RFC 9293 s.3.8.6.2.1 (3): half of the largest window that the peer ever offered is worth it.
TEST(Window, HalfOfASmallWindowIsUsedAtOnce_TCP_9293_3_8_6_2_01) {
  for (const uint16_t window : {599, 600}) {
    RawPeer p;
    p.accept(option_mss(1460), {}, 1200);
    p.inject({.seq = kIrs + 1, .ack = kIss + 1, .flags = flag::kAck, .window = window});
    p.send_record(1460);
    ASSERT_EQ(p.silent(), window < 600) << window;
    if (window < 600) continue;
    p.expect({.payload = 600u});
    // The rest of the record is bound by the same rule.
    p.inject({.seq = kIrs + 1, .ack = kIss + 601, .flags = flag::kAck, .window = 599});
    EXPECT_TRUE(p.silent());
    p.inject({.seq = kIrs + 1, .ack = kIss + 601, .flags = flag::kAck, .window = 700});
    p.expect({.payload = 700u});
  }
}

// RFC 9293 s.3.8.6.2.1 (2): what is pushed and fits the window goes at once, whatever share of the
// window or of a segment it is.
TEST(Window, ASmallMessageThatFitsDoesNotWait_TCP_9293_3_8_6_2_01) {
  for (const uint16_t window : {100, 257, 1459}) {
    RawPeer p;
    p.accept();  // and offers 65535
    p.inject({.seq = kIrs + 1, .ack = kIss + 1, .flags = flag::kAck, .window = window});
    uint32_t at = 1;
    for (int message = 0; message < 3; ++message, at += 100) {
      p.send_record(100);
      ASSERT_FALSE(p.silent()) << window;
      p.expect({.flags = flag::kAck | flag::kPsh, .seq = kIss + at, .payload = 100});
      p.inject({.seq = kIrs + 1, .ack = kIss + at + 100, .flags = flag::kAck, .window = window});
    }
    EXPECT_EQ(p.stack.counters().data_segments_out, 3u);
    EXPECT_EQ(p.stack.counters().aligned_segments_out, 3u);
    EXPECT_EQ(p.stack.counters().resegmented_records, 0u);
    // One octet more than the window holds is another matter: rules (3) and (4).
    p.send_record(window + 1);
    EXPECT_TRUE(p.silent()) << window;
  }
}

// A trace shows the octets of each segment, also of those that waited in a copy.
TEST(Window, SegmentsInASmallWindowAreTracedWithTheirOctets) {
  struct Sink final : base::TraceSink {
    void record(TraceKind kind, base::Range range, base::Now) override {
      if (kind == TraceKind::Sent) sent.push_back(range);
    }
    std::vector<base::Range> sent;
  };
  Sink sink;
  RawPeer p;
  p.accept(option_mss(1460), {}, 1000);
  p.user.stream->set_trace(&sink);
  p.send_record(100);
  p.send_record(200);
  ASSERT_EQ(sink.sent.size(), 2u);
  EXPECT_EQ(sink.sent[0], (base::Range{0, 100}));
  EXPECT_EQ(sink.sent[1], (base::Range{100, 300}));
}

// The same with octets in flight, for whoever does not ask for Nagle's rule.
TEST(Window, ASmallMessageFitsBesideWhatIsInFlight_TCP_9293_3_8_6_2_01) {
  RawPeer p;
  p.accept();
  p.inject({.seq = kIrs + 1, .ack = kIss + 1, .flags = flag::kAck, .window = 2000});
  p.user.queue(1460);
  p.user.queue(540);
  p.stack.output(p.now);
  p.expect({.payload = 1460u});
  ASSERT_FALSE(p.silent());
  p.expect({.flags = kPshAck, .payload = 540u});  // to the last octet
  p.send_record(1);
  EXPECT_TRUE(p.silent());
}

// Nagle's rule is the bracket of (2): a small segment in flight still holds back the next.
TEST(Window, NaglesRuleHoldsInASmallWindow_TCP_9293_3_8_6_2_01) {
  tcp::Config config = RawPeer::bare();
  config.nagle = true;
  RawPeer p(config);
  tcp::ByteStream user(10000);
  StreamAcceptor acceptor(user);
  ASSERT_TRUE(p.stack.unlisten({RawPeer::kUs, RawPeer::kOurPort}).has_value());
  ASSERT_TRUE(p.stack.listen({RawPeer::kUs, RawPeer::kOurPort}, acceptor).has_value());
  p.inject({.seq = kIrs, .flags = flag::kSyn, .options = option_mss(1460)});
  p.next();
  p.inject({.seq = kIrs + 1, .ack = kIss + 1, .flags = flag::kAck, .window = 1000});
  const std::array<uint8_t, 100> message{};
  user.write(message);
  p.stack.output(p.now);
  p.expect({.flags = kPshAck, .payload = 100u});
  user.write(message);
  user.write(message);
  p.stack.output(p.now);
  EXPECT_TRUE(p.silent());
  p.inject({.seq = kIrs + 1, .ack = kIss + 101, .flags = flag::kAck, .window = 1000});
  p.expect({.flags = kPshAck, .payload = 200u});
}

// A record that waited for room and goes out whole and full is no small segment: the next one does
// not wait for its ACK (RFC 9293 s.3.7.4).
TEST(Window, AFullSegmentThatWaitedHoldsNothingBack_TCP_9293_3_8_6_2_01) {
  tcp::Config config = RawPeer::bare();
  config.nagle = true;
  RawPeer p(config);
  tcp::ByteStream user(10000);
  StreamAcceptor acceptor(user);
  ASSERT_TRUE(p.stack.unlisten({RawPeer::kUs, RawPeer::kOurPort}).has_value());
  ASSERT_TRUE(p.stack.listen({RawPeer::kUs, RawPeer::kOurPort}, acceptor).has_value());
  p.inject({.seq = kIrs, .flags = flag::kSyn, .window = 1000, .options = option_mss(1460)});
  p.next();
  p.inject({.seq = kIrs + 1, .ack = kIss + 1, .flags = flag::kAck, .window = 1000});
  p.egress.full = true;
  user.write(std::array<uint8_t, 1460>{});
  p.stack.output(p.now);
  ASSERT_EQ(user.pending(), 0u) << "the record is pulled, and not sent";
  p.egress.full = false;
  p.inject({.seq = kIrs + 1, .ack = kIss + 1, .flags = flag::kAck});
  p.expect({.flags = kPshAck, .payload = 1460u});
  user.write(std::array<uint8_t, 100>{});
  p.stack.output(p.now);
  p.expect({.flags = kPshAck, .payload = 100u});
  user.write(std::array<uint8_t, 100>{});
  p.stack.output(p.now);
  EXPECT_TRUE(p.silent()) << "that one was small";
}

TEST(Window, AnEmssThatShrinksCutsWhatIsInFlight) {
  Pair p;
  ASSERT_TRUE(p.open());
  for (int i = 0; i < 10; ++i) p.a.queue(1448);
  p.link.hook = [](const LinkFrame& f) { return Fate{.drop = f.from_a && f.tcp.size() > 1000}; };
  p.link.run(milliseconds(1));
  p.link.egress_a.mtu = 900;
  ASSERT_TRUE(p.drain());
  EXPECT_EQ(p.a.changed_emss, 900u - 52);
  EXPECT_GE(p.link.a.counters().resegmented_records, 10u);
  EXPECT_TRUE(p.b.clean());
  ASSERT_TRUE(p.close());
  EXPECT_TRUE(p.everything_returned());
}

TEST(Window, APartialAckCutsARecordOnce) {
  RawPeer p;
  p.accept();
  p.send_record(1000);
  p.expect({.flags = kPshAck, .payload = 1000u});
  p.inject({.seq = kIrs + 1, .ack = kIss + 401, .flags = flag::kAck});
  p.wait(seconds(10));
  p.expect({.flags = kPshAck, .seq = kIss + 401, .octets = octets_at(400, 600, 11)});
  EXPECT_EQ(p.user.rebuilds, 1u);  // later ones come from the copy
  EXPECT_EQ(p.user.released_to, 0u);
  p.inject({.seq = kIrs + 1, .ack = kIss + 1001, .flags = flag::kAck});
  EXPECT_EQ(p.user.released_to, 1000u);
  EXPECT_TRUE(p.stack.counters().retransmitted_segments >= 2);
}

TEST(Window, TheReceiversWindowMovesByWorthwhileSteps_TCP_9293_3_8_6_2_02) {
  RawPeer p;
  p.user.room = 10000;
  p.accept(option_mss(1460), {}, 65535);
  p.data(0, 1460, flag::kPsh);
  p.egress.sent.clear();
  p.user.room = 0;
  for (uint32_t at = 1460; at < 11680; at += 1460) p.data(at, 1460, flag::kPsh);
  uint32_t edge = 0;
  for (const Segment& s : p.egress.sent) {
    EXPECT_GE(s.ack + s.window, edge);  // never taken back
    edge = s.ack + s.window;
  }
  p.egress.sent.clear();
  p.user.stream->room_grew();
  p.stack.output(p.now);
  EXPECT_TRUE(p.silent());  // nothing worth telling
}

// RFC 9293 s.3.8.6.2.2: a step is two full segments, where half of the buffer is more.
TEST(Window, AnUpdateIsOfAWholeStep_TCP_9293_3_8_6_2_02) {
  for (const uint32_t grown : {2 * kMss - 1, 2 * kMss}) {
    RawPeer p;
    p.acceptor.room = p.user.room = 10000;
    p.accept();
    p.data(0, kMss, flag::kPsh);
    p.data(kMss, kMss, flag::kPsh);
    p.egress.sent.clear();
    p.user.room += grown;
    p.user.stream->room_grew();
    p.stack.output(p.now);
    EXPECT_EQ(p.silent(), grown < 2 * kMss);
  }
}

// The window of the handshake is one that the user, who comes later, can keep; also that of a
// cookie. A peer that was offered more would send what does not fit, and again, for ever.
TEST(Window, TheHandshakeOffersWhatTheListenerHasRoomFor_TCP_9293_3_8_6_01) {
  for (const uint32_t room : {300u, 100'000u}) {
    for (const bool cookie : {false, true}) {
      tcp::Config config = RawPeer::bare();
      if (cookie) config.max_half_open_per_listener = 0;
      RawPeer p(config);
      p.acceptor.room = room;
      p.inject({.seq = kIrs, .flags = flag::kSyn, .options = option_mss(1460)});
      EXPECT_EQ(p.stack.counters().syn_cookies_sent, cookie ? 1u : 0u);
      p.expect({.flags = kSynAck, .window = std::min(room, 65535u)});
    }
  }
}

// What the header cannot say was not offered, whatever room there is: nothing beyond it is taken.
TEST(Window, WithoutScalingItEndsWhereTheHeaderSays_TCP_9293_3_10_03) {
  RawPeer p;
  p.user.room = 4u << 20;
  p.accept();
  p.data(0, 1000, flag::kPsh);
  p.expect({.window = 65535u});
  p.data(1000 + 65535, 1000, flag::kPsh);
  EXPECT_EQ(p.stack.counters().unacceptable, 1u);
  EXPECT_EQ(p.user.places.size(), 1u);
  p.expect({.ack = kIrs + 1001});
  // The last octet inside is taken, the next one is not.
  p.data(1000 + 65534, 2, flag::kPsh);
  ASSERT_EQ(p.user.places.size(), 2u);
  EXPECT_EQ(p.user.places[1], (base::Range{1000 + 65534, 1000 + 65535}));
}

// The same with scaling: an octet beyond what field and shift make is beyond the window.
TEST(Window, WithScalingItEndsWhereTheHeaderSays_TCP_9293_3_10_03) {
  tcp::Config config = RawPeer::bare();
  config.window_scaling = true;
  config.receive_window = 1 << 20;  // a shift of 5
  RawPeer p(config);
  p.user.room = 100'001;  // no multiple of 32
  p.accept(option_mss(1460) + std::vector<uint8_t>{1, 3, 3, 0});
  p.data(0, 1000, flag::kPsh);
  const Segment ack = p.expect({.window = 100'001 >> 5});
  const uint32_t edge = 1000 + (uint32_t{ack.window} << 5);
  p.data(edge, 1, flag::kPsh);
  EXPECT_EQ(p.user.places.size(), 1u);
  p.data(edge - 1, 1, flag::kPsh);
  EXPECT_EQ(p.user.places.size(), 2u);
}

// A window update that the header cannot tell is none: to the peer it is a duplicate ACK.
TEST(Window, NoUpdateThatUpdatesNothing_TCP_9293_3_8_6_2_02) {
  for (const bool scaled : {false, true}) {
    tcp::Config config = RawPeer::bare();
    config.receive_window = 1 << 30;  // a shift of 14
    config.window_scaling = scaled;
    RawPeer p(config);
    p.user.room = 200'000;
    p.accept(scaled ? option_mss(1460) + std::vector<uint8_t>{1, 3, 3, 0} : option_mss(1460));
    p.data(0, 1000, flag::kPsh);
    uint64_t told = 0;
    const auto edge_of = [&](const Segment& s) {
      return s.ack - (kIrs + 1) + (uint64_t{s.window} << (scaled ? 14 : 0));
    };
    while (!p.silent()) told = edge_of(p.next());
    uint32_t updates = 0;
    for (uint32_t room = 200'000; room < 400'000; room += 1000) {
      p.user.room = room;
      p.user.stream->room_grew();
      p.stack.output(p.now);
      if (p.silent()) continue;
      const uint64_t edge = edge_of(p.next());
      EXPECT_GT(edge, told) << room;
      told = edge;
      ++updates;
    }
    EXPECT_EQ(updates, scaled ? 12u : 0u);
  }
}

// A stream that found the pool empty takes nothing, and says so.
TEST(ByteStreams, WithoutASendRingNothingIsWritable) {
  tcp::RingPool pool(1000, 1);
  tcp::ByteStream one(pool);
  tcp::ByteStream other(pool);
  EXPECT_FALSE(one.has_send_ring());
  EXPECT_EQ(one.writable(), 0u);
  ASSERT_TRUE(one.reserve_send());
  EXPECT_TRUE(one.has_send_ring());
  EXPECT_EQ(one.writable(), 1000u);
  const std::array<uint8_t, 300> octets{};
  EXPECT_EQ(one.put(octets), 300u);
  EXPECT_EQ(one.writable(), 700u);
  EXPECT_FALSE(other.reserve_send());
  EXPECT_FALSE(other.has_send_ring());
  EXPECT_EQ(other.writable(), 0u);
  EXPECT_EQ(other.put(octets), 0u);
}

class RingSize : public ::testing::TestWithParam<uint32_t> {};

// Also with a ring that holds no whole segment.
TEST_P(RingSize, ByteStreamsAreBoundedAndWhole) {
  TcpLink link;
  tcp::ByteStream a(10000);
  tcp::ByteStream b(GetParam());
  StreamAcceptor acceptor(b);
  ASSERT_TRUE(link.b.listen({kAddressB, 80}, acceptor).has_value());
  auto stream = link.a.connect({kAddressA, 0}, {kAddressB, 80}, a, link.now);
  ASSERT_TRUE(stream.has_value());
  a.attach(**stream);
  base::Prng random(4);
  link.hook = [&](const LinkFrame&) {
    return Fate{.drop = random.chance(0.03), .extra = microseconds(random.below(300))};
  };
  uint64_t written = 0;
  uint64_t read = 0;
  const bool done = link.run_until(
      [&] {
        std::array<uint8_t, 777> chunk;
        const auto n = static_cast<uint32_t>(
            std::min<uint64_t>({chunk.size(), a.writable(), 200'000 - written}));
        for (uint32_t i = 0; i < n; ++i) chunk[i] = octet_at(written + i, 5);
        written += a.write({chunk.data(), n});
        const uint32_t got = b.read(chunk);
        for (uint32_t i = 0; i < got; ++i) EXPECT_EQ(chunk[i], octet_at(read + i, 5));
        read += got;
        return read == 200'000;
      },
      seconds(600));
  ASSERT_TRUE(done) << read;
  a.close();
  b.close();
  ASSERT_TRUE(link.run_until([&] { return a.how_ended() && b.how_ended(); }, seconds(60)));
  EXPECT_TRUE(b.peer_has_finished());
}
INSTANTIATE_TEST_SUITE_P(Window, RingSize, ::testing::Values(3000, 700));

// TCP-9293-3.8.6.2-02
TEST(Window, ReadingALittleFromAFullBufferTellsNothing) {
  tcp::Config config = RawPeer::bare();
  config.receive_window = 4000;
  RawPeer p(config);
  p.accept();
  p.user.room = 3000;
  p.data(0, 1000, flag::kPsh);
  p.expect({.window = 3000u});
  p.user.room = 0;
  for (const uint32_t offset : {1000u, 2000u, 3000u}) {
    p.data(offset, 1000, flag::kPsh);
    p.expect({.window = 3000u - offset});
  }
  for (const uint32_t room : {1u, 100u, 1000u}) {
    p.user.room = room;
    p.user.stream->room_grew();
    p.stack.output(p.now);
    EXPECT_TRUE(p.silent()) << room;
  }
  // Nor does an ACK that has to go out anyway.
  p.user.room = 100;
  p.data(3900, 100);
  p.expect({.window = 0u});
  p.user.room = 2100;  // more than half of the largest room
  p.user.stream->room_grew();
  p.stack.output(p.now);
  p.expect({.window = 2100u});
}

}  // namespace
}  // namespace rnic::testing

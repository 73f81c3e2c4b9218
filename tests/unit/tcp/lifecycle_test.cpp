#include <numeric>
#include <set>

#include "pair.hpp"
#include "raw_peer.hpp"

namespace rnic::testing {
namespace {

TEST(Lifecycle, SimultaneousOpenGivesOneConnection_TCP_9293_3_5_02) {
  TcpLink link;
  RecordUser a{11, 22};
  RecordUser b{22, 11};
  const Endpoint end_a{kAddressA, 5000};
  const Endpoint end_b{kAddressB, 6000};
  a.stream = *link.a.connect(end_a, end_b, a, link.now);
  b.stream = *link.b.connect(end_b, end_a, b, link.now);
  ASSERT_TRUE(link.run_until([&] { return a.is_established && b.is_established; }, seconds(10)));
  for (int i = 0; i < 20; ++i) {
    a.queue(1000);
    b.queue(1000);
  }
  ASSERT_TRUE(
      link.run_until([&] { return a.ordered_to == 20000 && b.ordered_to == 20000; }, seconds(10)));
  EXPECT_EQ(link.a.live_connections(), 1u);
  EXPECT_EQ(link.b.live_connections(), 1u);
}

TEST(Lifecycle, ALostSynIsSentAgain_TCP_9293_3_8_3_02) {
  Pair p;
  p.link.hook = [](const LinkFrame& f) { return Fate{.drop = f.number < 2}; };  // SYNs and SYN-ACKs
  p.connect();
  const base::Now start = p.link.now;
  ASSERT_TRUE(
      p.link.run_until([&] { return p.a.is_established && p.b.is_established; }, seconds(60)));
  EXPECT_GE(p.link.now - start, seconds(3));
  p.a.queue(1000);
  EXPECT_TRUE(p.drain());
}

// R2 of a SYN is three minutes at least (MUST-23), and the last one is sent late in them.
TEST(Lifecycle, ASynIsRepeatedForThreeMinutes_TCP_9293_3_8_3_02) {
  Pair p;
  base::Now last{};
  p.link.hook = [&](const LinkFrame& f) {
    if (f.from_a) last = p.link.now;
    return Fate{.drop = true};
  };
  p.connect();
  const base::Now start = p.link.now;
  ASSERT_TRUE(p.link.run_until([&] { return p.a.how_ended.has_value(); }, seconds(600)));
  EXPECT_EQ(*p.a.how_ended, StreamEnd::TimedOut);
  EXPECT_GE(p.link.now - start, seconds(180));
  EXPECT_GE(last - start, seconds(120));  // the RTO is a minute at most by then
  EXPECT_GE(p.link.frames_from_a, 7u);
}

// Settable lower.
TEST(Lifecycle, NobodyAnswers_TCP_9293_3_8_3_02) {
  tcp::Config config;
  config.connect_timeout = seconds(20);
  Pair p(config, config);
  p.link.hook = [](const LinkFrame&) { return Fate{.drop = true}; };
  p.connect();
  ASSERT_TRUE(p.link.run_until([&] { return p.a.how_ended.has_value(); }, seconds(30)));
  EXPECT_EQ(*p.a.how_ended, StreamEnd::TimedOut);
  EXPECT_TRUE(p.link.a.quiescent());
  EXPECT_EQ(p.link.a.counters().connections_timed_out, 1u);
}

// The event USER TIMEOUT (s.3.10.8) ends it when it is due, and says nothing.
TEST(Lifecycle, TheUserTimeOutIsKeptToTheMomentAndSilent_TCP_9293_3_8_3_01) {
  RawPeer p;
  p.accept();
  tcp::ConnectionOptions o = p.stack.default_options();
  o.user_timeout = seconds(20);
  ASSERT_TRUE(p.stack.set_options(*p.user.stream, o, p.now).has_value());
  p.send_record(100);
  p.wait(milliseconds(19'900));
  EXPECT_FALSE(p.user.how_ended);
  p.egress.sent.clear();
  p.wait(milliseconds(200));
  ASSERT_TRUE(p.user.how_ended);
  EXPECT_EQ(*p.user.how_ended, StreamEnd::TimedOut);
  EXPECT_TRUE(p.silent());
  p.inject(
      {.seq = kIrs + 1, .ack = kIss + 1, .flags = flag::kAck});  // what comes later draws a RST
  p.expect({.flags = flag::kRst});
}

TEST(Lifecycle, NobodyListensIsRefused) {
  Pair p;
  ASSERT_TRUE(p.link.b.unlisten({kAddressB, kPort}).has_value());
  p.connect();
  ASSERT_TRUE(p.link.run_until([&] { return p.a.how_ended.has_value(); }, seconds(5)));
  EXPECT_EQ(*p.a.how_ended, StreamEnd::Refused);
  EXPECT_EQ(p.link.b.counters().no_connection, 1u);
}

// RawPeer's SYN was refused: it may wait for a server that is about to listen.
tcp::Config waits_for_listener() {
  tcp::Config config = RawPeer::bare();
  config.refused_time = milliseconds(300);
  return config;
}
Segment refusal() { return {.ack = kIss + 1, .flags = flag::kRst | flag::kAck}; }

TEST(Lifecycle, ARefusedOpenAsksAgainForAsLongAsItMay) {
  RawPeer p(waits_for_listener());
  p.connect();
  const base::Now began = p.now;
  int asked = 1;
  while (!p.user.how_ended) {
    p.inject(refusal());
    p.wait(milliseconds(9));
    EXPECT_TRUE(p.silent()) << "a SYN without a pause";
    if (p.user.how_ended) break;
    p.wait(milliseconds(3));  // the wheel's ticks are coarse
    p.expect({.flags = flag::kSyn, .seq = kIss});
    ++asked;
  }
  EXPECT_EQ(*p.user.how_ended, StreamEnd::Refused);
  EXPECT_GE(p.now - began, milliseconds(300));
  EXPECT_LT(p.now - began, milliseconds(320));
  EXPECT_EQ(asked, 26);
}

TEST(Lifecycle, ARefusedOpenIsAnsweredByAListenerThatIsLate) {
  RawPeer p(waits_for_listener());
  p.connect();
  for (int refused = 0; refused < 2; ++refused) {
    p.inject(refusal());
    p.inject(refusal());  // twice, as a network may have it
    p.wait(milliseconds(12));
    p.expect({.flags = flag::kSyn, .seq = kIss});
    EXPECT_TRUE(p.silent());
  }
  // Nothing answers this one: the time-out of a SYN is what it was.
  p.wait(milliseconds(990));
  EXPECT_TRUE(p.silent());
  p.wait(milliseconds(15));
  p.expect({.flags = flag::kSyn, .seq = kIss});
  p.inject({.seq = kIrs, .ack = kIss + 1, .flags = flag::kSyn | flag::kAck});
  p.expect({.seq = kIss + 1, .ack = kIrs + 1});
  EXPECT_TRUE(p.user.is_established);
}

TEST(Lifecycle, TheAcceptorMayRefuse) {
  Pair p;
  p.acceptor.next.clear();
  p.connect();
  ASSERT_TRUE(p.link.run_until([&] { return p.a.how_ended.has_value(); }, seconds(5)));
  EXPECT_EQ(*p.a.how_ended, StreamEnd::PeerReset);
  EXPECT_EQ(p.link.b.live_connections(), 0u);
}

// Whoever accepts may say from within accept() that its room grew. There is no user yet to ask how
// much it is, and the connection opens as any other.
TEST(Lifecycle, AnAcceptorMayTellOfItsRoomAtOnce) {
  struct : llp::Acceptor {
    llp::StreamUser* accept(llp::Stream& stream, const Endpoint&, const Endpoint&,
                            base::Now) override {
      user->stream = &stream;
      stream.room_grew();
      return user;
    }
    RecordUser* user = nullptr;
  } acceptor;
  RawPeer p;
  acceptor.user = &p.user;
  p.our_port = 4421;
  ASSERT_TRUE(p.stack.listen({RawPeer::kUs, 4421}, acceptor).has_value());
  p.inject({.seq = kIrs, .flags = flag::kSyn, .options = option_mss(1460)});
  p.expect({.flags = flag::kSyn | flag::kAck});
  p.inject({.seq = kIrs + 1, .ack = kIss + 1, .flags = flag::kAck});
  EXPECT_TRUE(p.user.is_established);
  p.data(0, 100, flag::kPsh);
  EXPECT_EQ(p.user.ordered_to, 100u);
  p.expect({.ack = kIrs + 101});
}

// Which of several stacks a segment belongs to is asked with our end first, then the peer's; what
// belongs to another one is neither taken nor answered.
TEST(Lifecycle, ASegmentForAnotherStackIsNotAnswered_TCP_MQ_01) {
  RawPeer p;
  p.egress.home = [](const Endpoint& local, const Endpoint& remote) {
    return local == Endpoint{RawPeer::kUs, RawPeer::kOurPort} &&
           remote == Endpoint{RawPeer::kPeer, RawPeer::kPeerPort};
  };
  p.inject({.seq = kIrs, .flags = flag::kSyn, .source_port = 1001});
  EXPECT_TRUE(p.silent());
  EXPECT_EQ(p.stack.counters().not_at_home, 1u);
  p.inject({.seq = kIrs, .flags = flag::kSyn});
  p.expect({.flags = flag::kSyn | flag::kAck});
  EXPECT_EQ(p.stack.counters().not_at_home, 1u);
}

// RFC 9293 s.3.10.4, CLOSE in SYN-SENT: the connection is gone without a word. The peer's answer
// belongs to nobody then, and draws the RST.
TEST(Lifecycle, CloseBehindASynSaysNothing) {
  RawPeer p;
  const auto stream =
      p.stack.connect({RawPeer::kUs, 5000}, {RawPeer::kPeer, RawPeer::kPeerPort}, p.user, p.now);
  ASSERT_TRUE(stream.has_value());
  p.stack.output(p.now);
  p.expect({.flags = flag::kSyn});
  (*stream)->close();
  p.stack.output(p.now);
  EXPECT_TRUE(p.silent());
  EXPECT_EQ(p.user.how_ended, StreamEnd::Aborted);
  EXPECT_EQ(p.stack.live_connections(), 0u);
}

// A local port that the user chose is served when the answers come to this stack, which is asked
// with our end first; otherwise the connection could never be established.
TEST(Lifecycle, AChosenPortMustBringTheAnswersHere_TCP_MQ_01) {
  RawPeer p;
  p.egress.home = [](const Endpoint& local, const Endpoint& remote) {
    return local == Endpoint{RawPeer::kUs, 5000} &&
           remote == Endpoint{RawPeer::kPeer, RawPeer::kPeerPort};
  };
  const auto refused =
      p.stack.connect({RawPeer::kUs, 5001}, {RawPeer::kPeer, RawPeer::kPeerPort}, p.user, p.now);
  ASSERT_FALSE(refused.has_value());
  EXPECT_EQ(refused.error().code, ErrorCode::InvalidArgument);
  const auto stream =
      p.stack.connect({RawPeer::kUs, 5000}, {RawPeer::kPeer, RawPeer::kPeerPort}, p.user, p.now);
  ASSERT_TRUE(stream.has_value());
  p.stack.output(p.now);
  p.expect({.flags = flag::kSyn});
  EXPECT_TRUE(p.silent());
}

// TCP-9293-3.6-01
TEST(Lifecycle, HalfCloseKeepsReceiving_TCP_9293_3_6_02) {
  Pair p;
  ASSERT_TRUE(p.open());
  p.a.queue(1000);
  p.a.stream->close();
  ASSERT_TRUE(p.link.run_until([&] { return p.b.peer_has_finished; }, seconds(5)));
  EXPECT_EQ(p.b.ordered_to, 1000u);  // what was queued went out before the FIN
  EXPECT_FALSE(p.b.how_ended);
  for (int i = 0; i < 100; ++i) p.b.queue(1448);
  ASSERT_TRUE(p.link.run_until([&] { return p.a.ordered_to == 144800; }, seconds(5)));
  p.b.stream->close();
  ASSERT_TRUE(p.link.run_until([&] { return p.a.how_ended && p.b.how_ended; }, seconds(5)));
  EXPECT_EQ(*p.a.how_ended, StreamEnd::Closed);
  EXPECT_EQ(*p.b.how_ended, StreamEnd::Closed);
  EXPECT_EQ(p.link.a.live_connections(), 1u);  // TIME-WAIT
  EXPECT_EQ(p.link.b.live_connections(), 0u);
  p.link.run(seconds(2));
  EXPECT_TRUE(p.everything_returned());
}

TEST(Lifecycle, SimultaneousClose) {
  Pair p;
  ASSERT_TRUE(p.open());
  ASSERT_TRUE(p.close());
  EXPECT_EQ(*p.a.how_ended, StreamEnd::Closed);
  EXPECT_EQ(*p.b.how_ended, StreamEnd::Closed);
  EXPECT_TRUE(p.everything_returned());
}

TEST(Lifecycle, FinsThatGetLostAreSentAgain) {
  Pair p;
  ASSERT_TRUE(p.open());
  int fins = 0;
  p.link.hook = [&](const LinkFrame& f) { return Fate{.drop = f.has(flag::kFin) && fins++ < 3}; };
  ASSERT_TRUE(p.close());
  EXPECT_GE(fins, 4);
  EXPECT_TRUE(p.everything_returned());
}

TEST(Lifecycle, APeerThatNeverClosesIsReset) {
  tcp::Config config;
  config.close_timeout = seconds(2);
  Pair p(config, {});
  ASSERT_TRUE(p.open());
  p.a.stream->close();
  ASSERT_TRUE(p.link.run_until([&] { return p.a.how_ended && p.b.how_ended; }, seconds(5)));
  EXPECT_EQ(*p.a.how_ended, StreamEnd::TimedOut);
  EXPECT_EQ(*p.b.how_ended, StreamEnd::PeerReset);
}

TEST(Lifecycle, AbortResetsThePeer_TCP_9293_3_5_3_01) {
  Pair p;
  ASSERT_TRUE(p.open());
  for (int i = 0; i < 100; ++i) p.a.queue(1448);
  p.link.run(milliseconds(2));
  p.a.stream->abort();
  EXPECT_FALSE(p.a.how_ended);  // not inside the call
  p.link.run(milliseconds(5));
  EXPECT_EQ(*p.a.how_ended, StreamEnd::Aborted);
  EXPECT_EQ(*p.b.how_ended, StreamEnd::PeerReset);
  EXPECT_TRUE(p.everything_returned());
}

TEST(Lifecycle, EveryCallbackMayAbort) {
  for (int which = 0; which < 4; ++which) {
    Pair p;
    if (which == 0) p.b.on_established = [&] { p.b.stream->abort(); };
    if (which == 1) p.b.on_place = [&](base::Range) { p.b.stream->abort(); };
    if (which == 2) p.b.on_peer_finished = [&] { p.b.stream->abort(); };
    if (which == 3) {
      p.b.verdict = [&](base::Range) {
        p.b.stream->abort();
        return llp::InspectVerdict::Accept;
      };
    }
    p.a.queue(3000);
    p.connect();
    p.link.run_until([&] { return p.a.is_established; }, seconds(1));
    p.a.stream->close();
    ASSERT_TRUE(p.link.run_until([&] { return p.a.how_ended && p.b.how_ended; }, seconds(10)));
    EXPECT_EQ(*p.b.how_ended, StreamEnd::Aborted) << which;
    EXPECT_EQ(*p.a.how_ended, StreamEnd::PeerReset) << which;
    EXPECT_TRUE(p.everything_returned()) << which;
  }
}

// We crashed, and the peer answers our SYN with an ACK of the connection that it still has: a RST
// that it must believe (s.3.5.1, figure 9), and our SYN goes on to be answered.
TEST(Lifecycle, AfterACrashOfOursThePeersHalfIsReset_TCP_9293_3_5_1_01) {
  RawPeer p;
  const Segment syn = p.connect();
  p.inject({.seq = kIrs + 300, .ack = kIss + 7777, .flags = flag::kAck});
  p.expect({.flags = flag::kRst, .seq = kIss + 7777});
  EXPECT_FALSE(p.user.how_ended);
  p.wait(seconds(2));
  p.expect({.flags = flag::kSyn, .seq = syn.seq});
  p.inject({.seq = kIrs, .ack = kIss + 1, .flags = flag::kSyn | flag::kAck});
  EXPECT_TRUE(p.user.is_established);
}

TEST(Lifecycle, AHalfOpenConnectionIsResetAndReopened_TCP_9293_3_5_1_01) {
  RawPeer p;
  p.accept();
  // The peer crashed and knows nothing: it answers our data with RST at our ACK number.
  p.send_record(100);
  const Segment data = p.next();
  p.inject({.seq = data.ack, .flags = flag::kRst});
  EXPECT_EQ(*p.user.how_ended, StreamEnd::PeerReset);
  EXPECT_TRUE(p.stack.quiescent());
  RecordUser again{11, 22};
  p.acceptor.next.push_back(&again);
  p.inject({.seq = 777, .flags = flag::kSyn, .options = option_mss(1460)});
  p.expect({.flags = kSynAck, .ack = 778u});
}

TEST(Lifecycle, TimeWaitAcknowledgesARepeatedFin_TCP_9293_3_6_1_02) {
  RawPeer p;
  p.accept();
  p.user.stream->close();
  p.stack.output(p.now);
  p.expect({.flags = kFinAck});
  p.inject({.seq = kIrs + 1, .ack = kIss + 2, .flags = kFinAck});
  EXPECT_EQ(*p.user.how_ended, StreamEnd::Closed);
  p.expect({.ack = kIrs + 2});
  p.wait(milliseconds(600));
  p.inject({.seq = kIrs + 1, .ack = kIss + 2, .flags = kFinAck});
  p.expect({.ack = kIrs + 2});
  p.wait(milliseconds(600));
  EXPECT_EQ(p.stack.live_connections(), 1u);         // the time began anew
  p.inject({.seq = kIrs + 2, .flags = flag::kRst});  // RFC 1337
  EXPECT_EQ(p.stack.live_connections(), 1u);
  p.wait(milliseconds(600));
  EXPECT_EQ(p.stack.live_connections(), 0u);
}

TEST(Lifecycle, ANewSynReopensFromTimeWait_TCP_9293_3_6_1_03) {
  RawPeer p;
  p.accept();
  p.user.stream->close();
  p.stack.output(p.now);
  p.next();
  p.inject({.seq = kIrs + 1, .ack = kIss + 2, .flags = kFinAck});
  p.next();
  p.inject({.seq = kIrs + 100000, .flags = flag::kSyn, .options = option_mss(1460)});
  p.expect({.flags = flag::kSyn | flag::kAck, .ack = kIrs + 100001});
}

TEST(Lifecycle, ConnectRejectsNonsense) {
  TcpLink link;
  RecordUser u{1, 2};
  EXPECT_FALSE(
      link.a.connect({kAddressA, 0}, {IpAddress::v4(0xe0000001), 80}, u, link.now).has_value());
  EXPECT_FALSE(
      link.a.connect({kAddressA, 0}, {IpAddress::v4(0xffffffff), 80}, u, link.now).has_value());
  EXPECT_FALSE(link.a.connect({kAddressA, 0}, {kAddressB, 0}, u, link.now).has_value());
  link.egress_a.mtu = 0;
  const auto result = link.a.connect({kAddressA, 0}, {kAddressB, 80}, u, link.now);
  ASSERT_FALSE(result.has_value());
  EXPECT_EQ(result.error().code, ErrorCode::Unreachable);
}

TEST(Lifecycle, ListenersAreUnique) {
  TcpLink link;
  UserAcceptor acceptor;
  EXPECT_TRUE(link.a.listen({kAddressA, 80}, acceptor).has_value());
  EXPECT_EQ(link.a.listen({kAddressA, 80}, acceptor).error().code, ErrorCode::AlreadyExists);
  EXPECT_TRUE(link.a.unlisten({kAddressA, 80}).has_value());
  EXPECT_EQ(link.a.unlisten({kAddressA, 80}).error().code, ErrorCode::NotFound);
}

// Port 0 stands for one on which nobody listens, at whatever address.
TEST(Lifecycle, AListenersPortIsChosen) {
  tcp::Config config;
  config.ephemeral_first = 65533;
  TcpLink link(config);
  UserAcceptor acceptor;
  EXPECT_TRUE(link.a.listen({IpAddress::v4(0x0a000063), 65534}, acceptor).has_value());
  std::set<uint16_t> ports;
  for (int i = 0; i < 2; ++i) {
    const auto listening = link.a.listen({kAddressA, 0}, acceptor);
    ASSERT_TRUE(listening.has_value());
    EXPECT_EQ(listening->address, kAddressA);
    ports.insert(listening->port);
  }
  EXPECT_EQ(ports, (std::set<uint16_t>{65533, 65535}));
  const auto none = link.a.listen({{}, 0}, acceptor);
  ASSERT_FALSE(none.has_value());
  EXPECT_EQ(none.error().code, ErrorCode::ResourceExhausted);
  EXPECT_NE(none.error().message.find("tcp.ephemeral_first"), std::string::npos);
  EXPECT_TRUE(link.a.unlisten({kAddressA, 65533}).has_value());
  EXPECT_EQ(link.a.listen({{}, 0}, acceptor)->port, 65533);
}

TEST(Lifecycle, EphemeralPortsAreSpread_TCP_6056_01) {
  TcpLink link;
  std::vector<std::unique_ptr<RecordUser>> users;
  std::vector<int> ports;
  for (int i = 0; i < 20; ++i) {
    users.push_back(std::make_unique<RecordUser>(1, 2));
    auto s = link.a.connect({kAddressA, 0}, {kAddressB, 80}, *users.back(), link.now);
    ASSERT_TRUE(s.has_value());
    ports.push_back((*s)->local().port);
    EXPECT_GE(ports.back(), 49152);
  }
  int neighbours = 0;
  for (size_t i = 1; i < ports.size(); ++i) neighbours += ports[i] == ports[i - 1] + 1;
  EXPECT_LT(neighbours, 3);
}

// RFC 6056 s.3.3.1: wherever the search for a port begins, it comes past all of them.
TEST(Lifecycle, TheLastFreeEphemeralPortIsFound_TCP_6056_01) {
  tcp::Config config = RawPeer::bare();
  config.ephemeral_first = 65533;
  RawPeer p(config);
  for (int round = 0; round < 50; ++round) {
    std::vector<std::unique_ptr<RecordUser>> users;
    std::set<uint16_t> ports;
    for (int i = 0; i < 3; ++i) {
      users.push_back(std::make_unique<RecordUser>(1, 2));
      RecordUser& u = *users.back();
      const auto s = p.stack.connect({RawPeer::kUs, 0}, {RawPeer::kPeer, 80}, u, p.now);
      ASSERT_TRUE(s.has_value()) << round << ": " << s.error().message;
      u.stream = *s;
      ports.insert((*s)->local().port);
    }
    EXPECT_EQ(ports, (std::set<uint16_t>{65533, 65534, 65535}));
    for (const auto& u : users) u->stream->abort();
    p.stack.output(p.now);
  }
}

TEST(Lifecycle, InitialSequenceNumbersFollowClockAndTuple_TCP_9293_3_4_1_01) {
  RawPeer p;
  p.stack.force_isn(std::nullopt);
  const auto isn = [&](uint16_t port) {
    p.inject({.seq = kIrs, .flags = flag::kSyn, .source_port = port});
    const uint32_t seq = p.next().seq;
    p.inject({.seq = kIrs + 1, .flags = flag::kRst, .source_port = port});
    return seq;
  };
  const uint32_t first = isn(1000);
  EXPECT_NE(first >> 16, isn(1001) >> 16);
  p.now += milliseconds(400);
  EXPECT_EQ(isn(1000) - first, 100'000u);  // one tick each 4 microseconds
}

// An acceptor that stops listening is not called any more, even if handshakes were under way; nor
// is one that listens in its place later called for them.
TEST(Lifecycle, HandshakesUnderWayEndWithTheirListener) {
  RawPeer p;
  p.acceptor.next.push_back(&p.user);
  p.inject({.seq = kIrs, .flags = flag::kSyn, .options = option_mss(1460)});
  p.expect({.flags = flag::kSyn | flag::kAck});
  ASSERT_TRUE(p.stack.unlisten({RawPeer::kUs, RawPeer::kOurPort}).has_value());
  p.stack.output(p.now);
  EXPECT_TRUE(p.next().flags & flag::kRst);
  EXPECT_EQ(p.stack.live_connections(), 0u);
  UserAcceptor later;
  ASSERT_TRUE(p.stack.listen({RawPeer::kUs, RawPeer::kOurPort}, later).has_value());
  p.inject({.seq = kIrs + 1, .ack = kIss + 1, .flags = flag::kAck});
  EXPECT_EQ(p.acceptor.accepted, 0u);
  EXPECT_EQ(later.accepted, 0u);
  EXPECT_FALSE(p.user.is_established);
}

// RFC 9293 s.3.10.4: the FIN is formed behind the last octets, and rides on them.
TEST(Lifecycle, TheFinRidesOnTheLastOctets) {
  RawPeer p;
  p.accept();
  for (int i = 0; i < 3; ++i) p.user.queue(1460);
  p.user.stream->close();
  p.stack.output(p.now);
  for (uint32_t i = 0; i < 3; ++i) {
    SCOPED_TRACE(i);
    const uint8_t last = i == 2 ? flag::kFin | flag::kPsh : 0;
    p.expect({.flags = flag::kAck | last, .payload = 1460});
  }
  EXPECT_TRUE(p.silent());
  // Lost: octets and FIN go again in one segment, and end together.
  p.inject({.seq = kIrs + 1, .ack = kIss + 1 + 2920, .flags = flag::kAck});
  p.wait(seconds(1));
  p.expect({.flags = kFinAck | flag::kPsh, .seq = kIss + 1 + 2920, .payload = 1460});
  // Only the octets are acknowledged: the FIN is still owed, alone.
  p.egress.sent.clear();
  p.inject({.seq = kIrs + 1, .ack = kIss + 1 + 4380, .flags = flag::kAck});
  EXPECT_EQ(p.user.released_to, 4380u);
  p.wait(seconds(2));
  p.expect({.flags = kFinAck, .seq = kIss + 1 + 4380, .payload = 0});
  p.inject({.seq = kIrs + 1, .ack = kIss + 2 + 4380, .flags = kFinAck});
  EXPECT_EQ(p.user.how_ended, StreamEnd::Closed);
}

/// Says how many octets it has to send.
struct CountingUser final : RecordUser {
  using RecordUser::RecordUser;
  [[nodiscard]] uint32_t pending() const override {
    return std::accumulate(to_send.begin(), to_send.end(), 0u);
  }
};

// RFC 9293 s.3.10.4: cwnd holds octets back. Behind the last of them the FIN waits for no ACK.
TEST(Lifecycle, AFinGoesThoughTheCongestionWindowIsFull) {
  RawPeer p;
  CountingUser user{11, 22};
  p.acceptor.next.push_back(&user);
  p.inject({.seq = kIrs, .flags = flag::kSyn, .options = option_mss(1460)});
  p.next();
  p.inject({.seq = kIrs + 1, .ack = kIss + 1, .flags = flag::kAck});
  ASSERT_TRUE(user.is_established);
  for (int i = 0; i < 10; ++i) user.queue(1460);
  p.stack.output(p.now);
  for (int i = 0; i < 10; ++i) p.expect({.flags = i == 9 ? kPshAck : flag::kAck, .payload = 1460u});
  EXPECT_EQ(p.stack.info(*user.stream, p.now)->pipe, p.stack.info(*user.stream, p.now)->cwnd);
  user.stream->close();
  p.stack.output(p.now);
  p.expect({.flags = kFinAck, .seq = kIss + 1 + 14600});
}

// What ends is told at the next turn, whether or not the port has room for the RST.
TEST(Lifecycle, AnEndIsToldThoughThePortIsFull) {
  RawPeer p;
  p.accept();
  p.egress.full = true;
  p.user.stream->abort();
  p.stack.output(p.now);
  EXPECT_EQ(p.user.how_ended, StreamEnd::Aborted);
  EXPECT_TRUE(p.silent());
  EXPECT_EQ(p.stack.live_connections(), 0u);
  p.egress.full = false;
  p.stack.output(p.now);
  p.expect({.flags = flag::kRst | flag::kAck});
}

TEST(Lifecycle, AnAckOfASynAckThatHasNotLeftIsNoAnswerToIt) {
  RawPeer p;
  p.acceptor.next.push_back(&p.user);
  p.egress.full = true;
  p.inject({.seq = kIrs, .flags = flag::kSyn, .options = option_mss(1460)});
  p.inject({.seq = kIrs + 1, .ack = kIss + 1, .flags = flag::kAck});
  EXPECT_FALSE(p.user.is_established) << "it was guessed";
  p.egress.full = false;
  p.stack.output(p.now);
  p.expect({.flags = flag::kRst, .seq = kIss + 1});
  p.expect({.flags = flag::kSyn | flag::kAck, .ack = kIrs + 1});
  p.inject({.seq = kIrs + 1, .ack = kIss + 1, .flags = flag::kAck});
  EXPECT_TRUE(p.user.is_established);
}

}  // namespace
}  // namespace rnic::testing

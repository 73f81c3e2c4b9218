#include "tcp/syn_cookies.hpp"

#include "base/prng.hpp"
#include "crowd.hpp"
#include "raw_peer.hpp"
#include "tcp/reply_queue.hpp"

namespace rnic::testing {
namespace {

constexpr Endpoint kLocal{IpAddress::v4(0x0a000001), 80};
constexpr Endpoint kRemote{IpAddress::v4(0x0a000002), 1000};

/// What cookies are made with.
struct Baker {
  explicit Baker(const tcp::Secret& secret = {1, 2}) : cookies(config, secret, terms) {}

  tcp::Config config;
  CaptureEgress egress;
  tcp::SynTerms terms{config, egress};
  tcp::SynCookies cookies;
};

TEST(SynCookies, CarryTheMssAndFitOneSynOnly) {
  Baker baker;
  tcp::SynCookies& cookies = baker.cookies;
  const base::Now now = base::from_nanos(0) + seconds(1000);
  const base::Seq32 irs(77);
  for (const auto& [offered, kept] : std::vector<std::pair<uint16_t, uint16_t>>{
           {1, 216}, {536, 536}, {1000, 536}, {1460, 1460}, {1461, 1460}, {65535, 8960}}) {
    const base::Seq32 iss = cookies.make(kLocal, kRemote, irs, offered, now);
    EXPECT_EQ(cookies.check(kLocal, kRemote, irs, iss, now), kept);
    EXPECT_FALSE(cookies.check(kLocal, kRemote, irs + 1, iss, now));
    EXPECT_FALSE(cookies.check(kLocal, {kRemote.address, 1001}, irs, iss, now));
    EXPECT_FALSE(cookies.check({kLocal.address, 81}, kRemote, irs, iss, now));
    EXPECT_FALSE(cookies.check(kLocal, kRemote, irs, iss + 8, now));
    Baker other({1, 3});
    EXPECT_FALSE(other.cookies.check(kLocal, kRemote, irs, iss, now));
  }
}

TEST(SynCookies, AgeAndTheirKeysChange) {
  Baker baker;
  tcp::SynCookies& cookies = baker.cookies;
  const base::Now now = base::from_nanos(0) + 10 * tcp::SynCookies::kPeriod;
  const base::Seq32 irs(77);
  const base::Seq32 iss = cookies.make(kLocal, kRemote, irs, 1460, now);
  EXPECT_TRUE(cookies.check(kLocal, kRemote, irs, iss, now + tcp::SynCookies::kPeriod));
  EXPECT_FALSE(cookies.check(kLocal, kRemote, irs, iss, now + 2 * tcp::SynCookies::kPeriod));
  EXPECT_NE(cookies.make(kLocal, kRemote, irs, 1460, now + 3 * tcp::SynCookies::kPeriod), iss);
  EXPECT_TRUE(cookies.check(kLocal, kRemote, irs, iss, now));  // the old key is made again
}

// The SYN comes back out of the ACK, with what both ends have.
TEST(SynCookies, TheSynComesBackFromTheAck) {
  const base::Now now = base::from_nanos(0) + seconds(1000);
  UserAcceptor acceptor;
  tcp::ConnectionOptions options;
  options.ecn = Ecn::Accept;
  options.dscp = 10;
  for (const bool stamped : {false, true}) {
    Baker baker;
    tcp::Segment syn;
    syn.local = kLocal;
    syn.remote = kRemote;
    syn.seq = base::Seq32(77);
    syn.flags = flag::kSyn | kBoth;
    syn.options.mss = 1460;
    syn.options.sack_permitted = true;
    syn.options.window_scale = 5;
    if (stamped) syn.options.timestamps = {9, 0};
    tcp::Reply reply;
    baker.cookies.answer(syn, acceptor, options, now, reply);
    EXPECT_EQ(reply.flags, flag::kSyn | flag::kAck | (stamped ? flag::kEce : 0));
    EXPECT_EQ(reply.ack, base::Seq32(78));
    EXPECT_EQ(reply.traffic_class, 40);
    wire::TcpOptions said;
    ASSERT_TRUE(said.parse(base::ByteView(reply.options).first(reply.options_length)));
    EXPECT_EQ(said.sack_permitted, stamped);
    EXPECT_EQ(said.window_scale.has_value(), stamped);
    tcp::Segment ack;
    ack.local = kLocal;
    ack.remote = kRemote;
    ack.seq = base::Seq32(78);
    ack.ack = reply.seq + 1;
    ack.flags = flag::kAck;
    if (stamped) ack.options.timestamps = {10, said.timestamps->value};
    const auto back = baker.cookies.syn_before(ack, now);
    ASSERT_TRUE(back.has_value());
    EXPECT_EQ(back->seq, syn.seq);
    EXPECT_EQ(back->flags, stamped ? syn.flags : flag::kSyn);
    EXPECT_EQ(back->options.mss, 1460);
    EXPECT_EQ(back->options.sack_permitted, stamped);
    EXPECT_EQ(back->options.window_scale.has_value(), stamped);
    ack.ack += 8;
    EXPECT_FALSE(baker.cookies.syn_before(ack, now).has_value());
  }
}

TEST(SynCookies, GuessesDoNotOpen) {
  Baker baker;
  tcp::SynCookies& cookies = baker.cookies;
  base::Prng random(4);
  uint32_t hits = 0;
  for (int i = 0; i < 1'000'000; ++i) {
    hits += cookies.check(kLocal, kRemote, base::Seq32(1), base::Seq32(random.next32()),
                          base::from_nanos(1'000'000'000))
                ? 1
                : 0;
  }
  EXPECT_EQ(hits, 0u);  // 2^-28 each
}

TEST(SynCookies, TheStampKeepsTheOptionsAndNeverRunsAhead) {
  for (uint32_t clock = 0xffffff00; clock != 0x100; ++clock) {
    for (const tcp::CookieOptions& o :
         {tcp::CookieOptions{}, tcp::CookieOptions{7, true, false},
          tcp::CookieOptions{14, false, true}, tcp::CookieOptions{std::nullopt, true, true}}) {
      const uint32_t stamp = tcp::SynCookies::stamp(clock, o);
      ASSERT_LE(static_cast<int32_t>(stamp - clock), 0);
      ASSERT_GT(static_cast<int32_t>(stamp - clock), -128);
      ASSERT_EQ(tcp::SynCookies::options_of(stamp), o);
    }
  }
}

tcp::Config small_backlog() {
  tcp::Config config;
  config.max_half_open = 16;
  config.max_half_open_per_listener = 8;
  return config;
}

void flood(RawPeer& p, uint32_t syns) {
  base::Prng random(3);
  for (uint32_t i = 0; i < syns; ++i) {
    std::vector<uint8_t> syn(24);
    wire::write_tcp(syn.data(), {.source_port = static_cast<uint16_t>(random.between(1, 65535)),
                                 .destination_port = RawPeer::kOurPort,
                                 .sequence = base::Seq32(random.next32()),
                                 .flags = flag::kSyn,
                                 .window = 1000,
                                 .header_length = 24});
    base::store_be32(&syn[20], 0x020405b4);
    const auto source = IpAddress::v4(0x0b000000 | (random.next32() & 0xffffff));
    p.stack.input(
        {.source = source, .destination = RawPeer::kUs, .tcp = syn, .checksum_verified = true},
        p.now);
    if (i % 32 == 31) {
      p.stack.output(p.now);
      p.egress.sent.clear();
    }
    p.now += microseconds(1);
  }
  p.stack.output(p.now);
  p.egress.sent.clear();
}

// UNH-SEC-06
TEST(SynCookies, AMillionSpoofedSynsDoNotKeepOthersOut_TCP_SYN_01) {
  RawPeer p(small_backlog());
  p.stack.force_isn(std::nullopt);
  flood(p, 1'000'000);
  EXPECT_EQ(p.stack.live_connections(), 8u);
  EXPECT_EQ(p.stack.counters().syn_cookies_sent, 1'000'000u - 8);
  p.acceptor.next.push_back(&p.user);
  // Options come back in the timestamp.
  const auto ours = option_mss(1300) + option_sack_permitted() + option_timestamps(500, 0) +
                    std::vector<uint8_t>{1, 3, 3, 5};
  p.inject({.seq = kIrs, .flags = flag::kSyn, .options = ours});
  const Segment syn_ack = p.expect(
      {.flags = flag::kSyn | flag::kAck,
       .ack = kIrs + 1,
       .options = kinds::kMss | kinds::kWindowScale | kinds::kSackPermitted | kinds::kTimestamps,
       .ts_echo = 500});
  ASSERT_TRUE(syn_ack.parsed.timestamps);
  EXPECT_EQ(p.stack.live_connections(), 8u);  // nothing is kept
  p.now += milliseconds(40);
  p.inject({.seq = kIrs + 1,
            .ack = syn_ack.seq + 1,
            .flags = flag::kAck,
            .window = 1000,
            .payload = 10,
            .options = option_timestamps(510, syn_ack.parsed.timestamps->value)});
  EXPECT_TRUE(p.user.is_established);
  EXPECT_EQ(p.user.ordered_to, 10u);  // text on the completing ACK
  EXPECT_EQ(p.user.established_emss, 1220u - 12);
  EXPECT_EQ(p.stack.counters().syn_cookies_accepted, 1u);
  const auto info = *p.stack.info(*p.user.stream, p.now);
  EXPECT_TRUE(info.sack && info.timestamps && info.window_scaling);
  EXPECT_EQ(info.snd_wind_shift, 5);
  EXPECT_EQ(info.snd_wnd, 32000u);
}

TEST(SynCookies, WithoutTimestampsNothingIsAgreed) {
  RawPeer p(small_backlog());
  flood(p, 20);
  p.acceptor.next.push_back(&p.user);
  p.inject(
      {.seq = kIrs,
       .flags = flag::kSyn,
       .options = option_mss(1460) + option_sack_permitted() + std::vector<uint8_t>{1, 3, 3, 5}});
  const Segment syn_ack = p.expect({.flags = kSynAck, .options = kinds::kMss, .mss = 1460});
  // RFC 7323 s.2.2, RFC 2018 s.2: options of a SYN have no meaning on the ACK.
  p.inject(
      {.seq = kIrs + 1,
       .ack = syn_ack.seq + 1,
       .flags = flag::kAck,
       .window = 1000,
       .options = option_mss(500) + option_sack_permitted() + std::vector<uint8_t>{1, 3, 3, 5}});
  ASSERT_TRUE(p.user.is_established);
  const auto info = *p.stack.info(*p.user.stream, p.now);
  EXPECT_EQ(info.snd_wnd, 1000u);
  EXPECT_FALSE(info.sack || info.timestamps || info.window_scaling);
  EXPECT_EQ(p.user.established_emss, 1460u);
}

TEST(SynCookies, AnAckThatIsNoneIsReset) {
  RawPeer p(small_backlog());
  p.inject({.seq = kIrs + 1, .ack = 12345, .flags = flag::kAck});
  p.expect({.flags = flag::kRst});
  EXPECT_EQ(p.stack.counters().syn_cookies_rejected, 0u);  // none are looked for: no flood
  flood(p, 20);
  p.inject({.seq = kIrs + 1, .ack = 12345, .flags = flag::kAck});
  p.expect({.flags = flag::kRst});
  EXPECT_EQ(p.stack.counters().syn_cookies_rejected, 1u);
  EXPECT_EQ(p.acceptor.accepted, 0u);
}

// The ACK of the handshake and the first segment are lost: what follows them must not end the
// connection, which stands at the other end.
TEST(SynCookies, TextThatComesBeforeTheHandshakeWaits) {
  RawPeer p(small_backlog());
  p.stack.force_isn(std::nullopt);
  flood(p, 100);
  p.acceptor.next.push_back(&p.user);
  p.inject({.seq = kIrs, .flags = flag::kSyn, .options = option_mss(1460)});
  const uint32_t iss = p.next().seq;
  const auto text = [&](uint32_t offset) {
    p.inject({.seq = kIrs + 1 + offset, .ack = iss + 1, .flags = flag::kAck, .payload = 100});
  };
  text(100);
  EXPECT_TRUE(p.silent());
  p.inject({.seq = kIrs + 201, .ack = iss + 1, .flags = flag::kAck | flag::kFin});
  EXPECT_TRUE(p.silent());
  text(0);
  EXPECT_TRUE(p.user.is_established);
  text(100);
  EXPECT_EQ(p.user.ordered_to, 200u);
}

TEST(SynCookies, TwoStacksOpenThroughAFullBacklog) {
  tcp::Config config = small_backlog();
  config.max_half_open_per_listener = 1;
  Crowd c(50, 20, 1448, {}, config);
  const base::Now start = c.link.now;
  ASSERT_TRUE(c.drain(seconds(10)));
  EXPECT_LT(c.link.now - start, milliseconds(500));  // no SYN had to be sent again
  c.expect_clean_peers();
  EXPECT_GT(c.link.b.counters().syn_cookies_accepted, 40u);
}

TEST(SynCookies, TheBacklogOfOneListenerLeavesTheOthers) {
  tcp::Config config = RawPeer::bare();
  config.syn_cookies = false;
  config.max_half_open_per_listener = 4;
  RawPeer p(config);
  UserAcceptor other;
  ASSERT_TRUE(p.stack.listen({RawPeer::kUs, 4421}, other).has_value());
  for (uint16_t port = 1; port <= 10; ++port) {
    p.inject({.seq = kIrs, .flags = flag::kSyn, .source_port = port});
  }
  EXPECT_EQ(p.stack.counters().half_open_displaced, 6u);
  p.egress.sent.clear();
  p.our_port = 4421;
  p.inject({.seq = kIrs, .flags = flag::kSyn});
  p.expect({.flags = flag::kSyn | flag::kAck});
}

TEST(SynCookies, OneWithoutAPlaceInTheQueueOfRepliesIsDropped) {
  tcp::Config config = RawPeer::bare();
  config.max_half_open = 1;
  RawPeer p(config);
  p.hold_output = true;
  const auto syn = [&p](uint32_t port) {
    p.inject({.seq = kIrs, .flags = flag::kSyn, .source_port = static_cast<uint16_t>(port)});
  };
  syn(1);  // is half open
  for (uint32_t i = 0; i < tcp::ReplyQueue::kCapacity; ++i) syn(2 + i);
  EXPECT_EQ(p.stack.counters().syn_dropped, 0u);
  syn(1000);
  EXPECT_EQ(p.stack.counters().syn_dropped, 1u);
  EXPECT_EQ(p.stack.counters().syn_cookies_sent, tcp::ReplyQueue::kCapacity);
  p.stack.output(p.now);
  EXPECT_EQ(p.egress.sent.size(), 1u + tcp::ReplyQueue::kCapacity);
}

// The peer's text comes again: it is neither taken nor told that nobody is there.
TEST(SynCookies, AnAckThatFindsNoConnectionLeftWaits) {
  tcp::Config config = RawPeer::bare();
  config.max_connections = 1;
  config.max_half_open = 0;  // each SYN gets a cookie
  RawPeer p(config);
  RecordUser late{11, 22};
  p.acceptor.next = {&p.user, &late};
  std::array<uint32_t, 2> iss{};
  for (uint16_t i = 0; i < 2; ++i) {
    p.inject({.seq = kIrs, .flags = flag::kSyn, .source_port = static_cast<uint16_t>(2000 + i)});
    iss[i] = p.next().seq;
  }
  const auto text = [&](uint16_t i) {
    p.inject({.seq = kIrs + 1,
              .ack = iss[i] + 1,
              .flags = flag::kAck | flag::kPsh,
              .payload = 100,
              .source_port = static_cast<uint16_t>(2000 + i)});
  };
  text(0);
  ASSERT_TRUE(p.user.is_established);
  p.egress.sent.clear();
  text(1);
  EXPECT_TRUE(p.silent());
  EXPECT_EQ(p.stack.counters().syn_dropped, 1u);
  EXPECT_EQ(p.stack.counters().syn_cookies_accepted, 1u);
  p.user.stream->abort();
  p.stack.output(p.now);
  text(1);
  EXPECT_TRUE(late.is_established);
  EXPECT_EQ(late.ordered_to, 100u);
  EXPECT_EQ(p.stack.counters().syn_dropped, 1u);
}

}  // namespace
}  // namespace rnic::testing

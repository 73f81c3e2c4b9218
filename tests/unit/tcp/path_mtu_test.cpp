#include "pair.hpp"
#include "raw_peer.hpp"

namespace rnic::testing {
namespace {

using Kind = llp::IcmpError::Kind;

/// An ICMP error that quotes a segment of the stack.
void icmp(RawPeer& p, Kind kind, uint32_t seq, uint32_t mtu = 0, uint32_t quoted_length = 1500,
          size_t quoted = 8) {
  std::vector<uint8_t> tcp(8);
  base::store_be16(&tcp[0], p.our_port);
  base::store_be16(&tcp[2], RawPeer::kPeerPort);
  base::store_be32(&tcp[4], seq);
  tcp.resize(quoted);
  p.stack.icmp_error({.kind = kind,
                      .mtu = mtu,
                      .quoted_length = quoted_length,
                      .source = RawPeer::kUs,
                      .destination = RawPeer::kPeer,
                      .tcp = tcp},
                     p.now);
  p.stack.output(p.now);
}

/// Three records of a full segment each are in flight.
void three_in_flight(RawPeer& p) {
  p.accept();
  for (int i = 0; i < 3; ++i) p.user.queue(1460);
  p.stack.output(p.now);
  for (int i = 0; i < 3; ++i) p.expect({.flags = i == 2 ? kPshAck : flag::kAck, .payload = 1460u});
}

TEST(PathMtu, OutstandingSegmentsGoOutSmallerAtOnce_TCP_1191_3_01) {
  RawPeer p;
  three_in_flight(p);
  const uint32_t cwnd = p.stack.info(*p.user.stream, p.now)->cwnd;
  const base::Now before = p.now;
  icmp(p, Kind::PacketTooBig, kIss + 1, 1000);
  EXPECT_EQ(p.now, before);
  EXPECT_EQ(p.user.changed_emss, 960u);
  std::vector<bool> covered(3 * 1460);
  while (!p.silent()) {
    const Segment s = p.next();
    EXPECT_LE(s.payload, 960u);
    const uint32_t at = s.seq - (kIss + 1);
    const bool last = at + s.payload == covered.size();
    compare(s, {.flags = last ? kPshAck : flag::kAck, .octets = octets_at(at, s.payload, 11)});
    ASSERT_LE(at + s.payload, covered.size());
    std::fill_n(covered.begin() + at, s.payload, true);
  }
  EXPECT_EQ(std::count(covered.begin(), covered.end(), true), 3 * 1460);
  EXPECT_EQ(p.stack.info(*p.user.stream, p.now)->cwnd, cwnd);  // no sign of congestion
  EXPECT_EQ(p.stack.counters().fast_recoveries + p.stack.counters().timeouts, 0u);
  EXPECT_EQ(p.stack.counters().path_mtu_reductions, 1u);
  // Everything after is aligned again.
  p.inject({.seq = kIrs + 1, .ack = kIss + 1 + 3 * 1460, .flags = flag::kAck});
  for (int i = 0; i < 3; ++i) p.user.queue(900);
  p.stack.output(p.now);
  for (int i = 0; i < 3; ++i) p.expect({.flags = i == 2 ? kPshAck : flag::kAck, .payload = 900u});
  EXPECT_EQ(p.user.released_to, 3u * 1460);
}

// Nobody uses a connection yet that is half open: its user hears of the smaller segments when it
// is established.
TEST(PathMtu, AHalfOpenConnectionLearnsItsPath) {
  RawPeer p;
  p.acceptor.next.push_back(&p.user);
  p.inject({.seq = kIrs, .flags = flag::kSyn, .options = option_mss(1460)});
  p.expect({.flags = flag::kSyn | flag::kAck, .ack = kIrs + 1});
  icmp(p, Kind::PacketTooBig, kIss, 1000);
  EXPECT_EQ(p.stack.counters().path_mtu_reductions, 1u);
  p.egress.sent.clear();
  p.inject({.seq = kIrs + 1, .ack = kIss + 1, .flags = flag::kAck});
  ASSERT_TRUE(p.user.is_established);
  EXPECT_EQ(p.user.established_emss, 960u);
}

TEST(PathMtu, SegmentsThatAreSmallEnoughAreNotSentAgain) {
  RawPeer p;
  p.accept();
  for (const uint32_t octets : {1460, 500, 960}) {  // 960 is just what a segment will hold
    p.send_record(octets);
    p.expect({.flags = kPshAck, .payload = octets});
  }
  icmp(p, Kind::PacketTooBig, kIss + 1, 1000);
  uint32_t again = 0;
  while (!p.silent()) again += p.next().payload;
  EXPECT_EQ(again, 1460u);
}

TEST(PathMtu, AnOldRouterIsAnsweredByThePlateaus_TCP_1191_5_01) {
  for (const auto& [quoted, emss] :
       std::vector<std::pair<uint32_t, uint32_t>>{{1500, 1452}, {1492, 966}, {1006, 468}}) {
    RawPeer p;
    three_in_flight(p);
    icmp(p, Kind::PacketTooBig, kIss + 1, 0, quoted);
    EXPECT_EQ(p.user.changed_emss, emss) << quoted;
  }
}

TEST(PathMtu, ImpossibleSizesAreIgnored_TCP_8201_4_01) {
  RawPeer p;
  three_in_flight(p);
  icmp(p, Kind::PacketTooBig, kIss + 1, 67);          // below the least of IPv4
  icmp(p, Kind::PacketTooBig, kIss + 1, 1500);        // not below the packet
  icmp(p, Kind::PacketTooBig, kIss + 1, 9000);        // never raised
  icmp(p, Kind::PacketTooBig, kIss + 1, 1400, 1400);  // the packet would have fitted
  EXPECT_EQ(p.user.changed_emss, 0u);
  EXPECT_TRUE(p.silent());
  EXPECT_EQ(p.stack.counters().icmp_ignored, 4u);
}

// Whatever size a forged message tells, what is left of a segment is worth its headers.
TEST(PathMtu, AForgedMessageLeavesAUsefulSize_MPA_9_1_01) {
  for (uint32_t mtu = 0; mtu <= 1500; mtu = mtu < 300 ? mtu + 1 : mtu + 50) {
    RawPeer p;
    three_in_flight(p);
    icmp(p, Kind::PacketTooBig, kIss + 1, mtu);
    const uint32_t emss = p.stack.info(*p.user.stream, p.now)->emss;
    ASSERT_GE(emss, 216u) << "a message of " << mtu << " octets";
    uint32_t octets = 0;
    while (!p.silent()) {
      const uint32_t payload = p.next().payload;
      ASSERT_LE(payload, emss) << mtu;
      octets += payload;
    }
    // What is sent again is all there was, in whole segments but for the last of each record.
    if (emss < 1460) {
      EXPECT_EQ(octets, 3 * 1460u) << mtu;
    }
  }
}

TEST(PathMtu, Ipv6NeverGoesBelow1280) {
  tcp::Config config;
  RawPeer p(config);
  const IpAddress us(0xfd00'0000'0000'0000, 1);
  const IpAddress peer(0xfd00'0000'0000'0000, 2);
  RecordUser u{11, 22};
  u.stream = *p.stack.connect({us, 5000}, {peer, 80}, u, p.now);
  p.stack.output(p.now);
  EXPECT_EQ(p.next().parsed.mss, 1440);  // 1500 less 60
  std::vector<uint8_t> t(24);
  wire::write_tcp(t.data(), {.source_port = 80,
                             .destination_port = 5000,
                             .sequence = base::Seq32(kIrs),
                             .acknowledgment = base::Seq32(kIss + 1),
                             .flags = flag::kSyn | flag::kAck,
                             .window = 65535,
                             .header_length = 20});
  p.stack.input({.source = peer,
                 .destination = us,
                 .tcp = base::ByteView(t).first(20),
                 .checksum_verified = true},
                p.now);
  EXPECT_EQ(u.established_emss, 1220u);  // TCP-9293-3.7.1-02: no MSS option
  u.queue(1220);
  p.stack.output(p.now);
  base::store_be16(&t[0], 5000);
  base::store_be16(&t[2], 80);
  base::store_be32(&t[4], kIss + 1);
  for (const uint32_t mtu : {1279u, 0u, 68u, 1280u}) {
    p.stack.icmp_error({.kind = Kind::PacketTooBig,
                        .mtu = mtu,
                        .quoted_length = 1280,
                        .source = us,
                        .destination = peer,
                        .tcp = t},
                       p.now);
  }
  EXPECT_EQ(p.stack.counters().icmp_ignored, 4u);
}

TEST(PathMtu, AnUnverifiedMessageWaitsForATimeOut_TCP_5927_7_01) {
  for (const bool progress : {false, true}) {
    RawPeer p;
    three_in_flight(p);
    icmp(p, Kind::PacketTooBig, kIss + 1 + 3 * 1460,
         1000);  // nothing with this number is in flight
    icmp(p, Kind::PacketTooBig, kIss + 1 - 500, 1000);
    EXPECT_EQ(p.user.changed_emss, 0u);
    EXPECT_EQ(p.stack.counters().icmp_unverified, 2u);
    if (progress) p.inject({.seq = kIrs + 1, .ack = kIss + 1 + 1460, .flags = flag::kAck});
    p.wait(milliseconds(350));  // one time-out
    EXPECT_GE(p.stack.counters().timeouts, 1u);
    EXPECT_EQ(p.user.changed_emss, progress ? 0u : 960u);  // octets arrive: it was a lie
  }
}

TEST(Icmp, OnlyWhatQuotesSomethingInFlightCounts_TCP_9293_3_9_2_2_01) {
  RawPeer p;
  three_in_flight(p);
  icmp(p, Kind::SourceQuench, kIss + 1);
  EXPECT_EQ(p.stack.counters().icmp_ignored, 1u);
  icmp(p, Kind::Soft, kIss + 1);
  EXPECT_EQ(p.stack.counters().icmp_soft, 1u);
  icmp(p, Kind::Hard, kIss);                 // before SND.UNA
  icmp(p, Kind::Hard, kIss + 1 + 3 * 1460);  // SND.NXT
  icmp(p, Kind::Hard, kIss + 0x80000000);
  EXPECT_EQ(p.stack.counters().icmp_unverified, 3u);
  icmp(p, Kind::Hard, kIss + 1, 0, 1500, 7);  // too short a quotation
  p.our_port = 9;
  icmp(p, Kind::Hard, kIss + 1);  // nobody's
  p.our_port = RawPeer::kOurPort;
  EXPECT_EQ(p.stack.counters().icmp_unmatched, 2u);
  EXPECT_FALSE(p.user.how_ended);
}

// RFC 5927 s.5.2: a connection that is synchronized outlives a hard error, even of a number in
// flight; a handshake, either way, does not.
TEST(Icmp, AHardErrorEndsAHandshakeOnly_TCP_9293_3_9_2_2_01) {
  RawPeer p;
  three_in_flight(p);
  icmp(p, Kind::Hard, kIss + 1 + 1460);
  EXPECT_FALSE(p.user.how_ended);
  EXPECT_EQ(p.stack.counters().icmp_soft, 1u);
  p.inject({.seq = kIrs + 1, .ack = kIss + 1 + 3 * 1460, .flags = flag::kAck});
  EXPECT_EQ(p.user.released_to, 3u * 1460);
  RawPeer half_open;
  half_open.inject({.seq = kIrs, .flags = flag::kSyn});
  half_open.expect({.flags = flag::kSyn | flag::kAck});
  icmp(half_open, Kind::Hard, kIss + 1);  // not the SYN's number
  EXPECT_EQ(half_open.stack.live_connections(), 1u);
  icmp(half_open, Kind::Hard, kIss);
  EXPECT_EQ(half_open.stack.live_connections(), 0u);
  EXPECT_EQ(half_open.stack.counters().icmp_hard, 1u);
}

TEST(Icmp, AConnectIsRefusedByAHardErrorAndToldOfASoftOne) {
  {
    RawPeer p;
    p.connect();
    icmp(p, Kind::Hard, kIss + 1);  // not the SYN's number
    EXPECT_FALSE(p.user.how_ended);
    icmp(p, Kind::Hard, kIss);
    EXPECT_EQ(*p.user.how_ended, StreamEnd::Refused);
  }
  for (const bool soft : {true, false}) {
    RawPeer p;
    p.connect();
    if (soft) icmp(p, Kind::Soft, kIss);
    p.wait(seconds(100));
    EXPECT_FALSE(p.user.how_ended);  // it may pass
    p.wait(seconds(100));
    EXPECT_EQ(*p.user.how_ended, soft ? StreamEnd::Unreachable : StreamEnd::TimedOut);
  }
}

constexpr uint32_t kBase = 1024;  ///< of a search over IPv4 (RFC 4821 s.7.2)

/// A path from a to b that swallows packets above `mtu` without a word.
void swallow(Pair& p, const uint32_t& mtu) {
  p.link.hook = [&mtu](const LinkFrame& f) {
    return Fate{.drop = f.from_a && f.tcp.size() + 20 > mtu};
  };
}

TEST(PathSearch, ABlackHoleIsFoundAndTheSizeGrowsAgain_TCP_4821_01) {
  Pair p;
  ASSERT_TRUE(p.open());
  uint32_t mtu = 1300;
  swallow(p, mtu);
  uint32_t largest = 0;
  p.link.seen = [&](const LinkFrame& f) { largest = std::max(largest, f.payload()); };
  for (int i = 0; i < 2000; ++i) p.a.queue(1448);
  ASSERT_TRUE(p.drain(seconds(120)));
  EXPECT_TRUE(p.b.clean());
  EXPECT_EQ(p.link.a.counters().black_holes, 1u);
  EXPECT_GT(p.link.a.counters().mtu_probes, 2u);
  EXPECT_GT(p.link.a.counters().mtu_probes_confirmed, 0u);
  EXPECT_GT(p.a.stream->emss(), 1300u - 52 - 32);
  EXPECT_LE(p.a.stream->emss(), 1300u - 52);
  EXPECT_EQ(p.link.a.counters().mtu_probes,
            p.link.a.counters().mtu_probes_confirmed + p.link.a.counters().mtu_probes_lost);
  // No loss of a probe was taken for congestion.
  EXPECT_EQ(p.link.a.counters().fast_recoveries, 0u);
  // The path grows: found by the next search, at the latest after tcp.mtu_probe_interval.
  mtu = 1500;
  p.link.run(seconds(601));
  for (int i = 0; i < 1000; ++i) p.a.queue(1448);
  ASSERT_TRUE(p.drain(seconds(60)));
  EXPECT_EQ(p.a.stream->emss(), 1448u);
  EXPECT_TRUE(p.b.clean());
}

// The packet that vanishes is smaller than a full one, and than the base of the search.
TEST(PathSearch, ABlackHoleBelowTheSizeOfAFullSegmentIsFound) {
  Pair p;
  ASSERT_TRUE(p.open());
  const uint32_t mtu = 700;
  swallow(p, mtu);
  p.a.queue(833);
  ASSERT_TRUE(p.drain(seconds(60)));
  EXPECT_EQ(p.link.a.counters().black_holes, 1u);
  EXPECT_TRUE(p.b.clean());
}

// RFC 4821 s.7.7: one time-out, or two, may be chance. The third of one segment in a row is taken
// for a black hole, and the segment goes out in smaller pieces at once.
TEST(PathSearch, TheThirdTimeoutOfASegmentIsTakenForABlackHole) {
  RawPeer p;
  p.accept();
  p.send_record(1460);
  const auto time_out = [&p] {
    const uint64_t before = p.stack.counters().timeouts;
    while (p.stack.counters().timeouts == before) {
      p.egress.sent.clear();
      p.wait(milliseconds(5));
    }
  };
  for (int i = 0; i < 2; ++i) {
    time_out();
    EXPECT_EQ(p.stack.counters().black_holes, 0u);
    p.expect({.flags = kPshAck, .payload = 1460u});
  }
  time_out();
  EXPECT_EQ(p.stack.counters().black_holes, 1u);
  EXPECT_LT(p.next().payload, 1460u);
}

TEST(PathSearch, CanBeSwitchedOff) {
  tcp::Config config;
  config.mtu_probing = false;
  config.user_timeout = seconds(30);
  Pair p(config, {});
  ASSERT_TRUE(p.open());
  const uint32_t mtu = 1300;
  swallow(p, mtu);
  p.a.queue(1400);
  EXPECT_FALSE(p.drain(seconds(60)));
  EXPECT_EQ(p.link.a.counters().black_holes, 0u);
  EXPECT_EQ(*p.a.how_ended, StreamEnd::TimedOut);
}

TEST(PathSearch, FromTheBaseUpward) {
  tcp::Config config;
  config.mtu_probe_from_base = true;
  Pair p(config, {});
  p.link.egress_a.mtu = p.link.egress_b.mtu = 9000;
  const uint32_t mtu = 4000;
  swallow(p, mtu);
  ASSERT_TRUE(p.open());
  EXPECT_EQ(p.a.established_emss, 1024u - 52);
  for (int i = 0; i < 3000; ++i) p.a.queue(8000);
  ASSERT_TRUE(p.drain(seconds(120)));
  EXPECT_GT(p.a.stream->emss(), 3900u);
  EXPECT_LE(p.a.stream->emss(), 4000u - 52);
  EXPECT_EQ(p.link.a.counters().timeouts, 0u);
}

// RFC 4821 s.7.6.1: the first loss of a size may be chance and is tried again, the second is not.
TEST(PathSearch, OneLossOfAProbeIsChance) {
  for (const uint32_t losses : {1u, 2u}) {
    tcp::Config config;
    config.mtu_probe_from_base = true;
    Pair p(config, {});
    ASSERT_TRUE(p.open());
    uint32_t lost = 0;
    p.link.hook = [&](const LinkFrame& f) {
      const bool drop = f.from_a && f.tcp.size() + 20 > 1024 && lost < losses;
      if (drop) ++lost;
      return Fate{.drop = drop};
    };
    for (int i = 0; i < 400; ++i) p.a.queue(1448);
    ASSERT_TRUE(p.drain());
    EXPECT_EQ(p.link.a.counters().mtu_probes_lost, losses);
    EXPECT_EQ(p.a.stream->emss() == 1448, losses == 1);
  }
}

// A search ends when less than a step of 32 octets is left; where a whole step is, it goes on.
TEST(PathSearch, AWholeStepIsTried) {
  for (const uint32_t left : {31u, 32u}) {
    tcp::Config config;
    config.mtu_probe_from_base = true;
    Pair p(config, {});
    p.link.egress_a.mtu = p.link.egress_b.mtu = 1024 + left;
    ASSERT_TRUE(p.open());
    for (int i = 0; i < 40; ++i) p.a.queue(8000);
    ASSERT_TRUE(p.drain());
    EXPECT_EQ(p.link.a.counters().mtu_probes, left == 32 ? 1u : 0u);
    EXPECT_EQ(p.a.stream->emss(), (left == 32 ? 1056u : 1024u) - 52);
  }
}

// RFC 4821 s.7.3: between the base and the size that vanished the middle is tried first.
TEST(PathSearch, BehindABlackHoleTheMiddleIsTriedFirst) {
  for (const uint32_t vanished : {1500u, 1499u}) {
    Pair p;
    p.link.egress_a.mtu = p.link.egress_b.mtu = vanished;
    ASSERT_TRUE(p.open());
    swallow(p, kBase);
    uint32_t first = 0;
    p.link.seen = [&](const LinkFrame& f) {
      const auto packet = static_cast<uint32_t>(f.tcp.size() + 20);
      if (p.link.a.counters().black_holes != 0 && f.from_a && packet > kBase && first == 0) {
        first = packet;
      }
    };
    p.a.queue(200'000);
    ASSERT_TRUE(p.drain());
    EXPECT_EQ(first, kBase + (vanished - kBase) / 2) << vanished;
  }
}

// RFC 4821 s.7.3: the size that vanished is too large for this search, though it is just a step
// of 32 octets above the base.
TEST(PathSearch, TheSizeThatVanishedIsNotTriedAgain) {
  Pair p;
  p.link.egress_a.mtu = p.link.egress_b.mtu = kBase + 32;
  ASSERT_TRUE(p.open());
  const uint32_t mtu = kBase + 31;
  swallow(p, mtu);
  p.a.queue(200'000);
  ASSERT_TRUE(p.drain());
  EXPECT_EQ(p.link.a.counters().black_holes, 1u);
  EXPECT_EQ(p.link.a.counters().mtu_probes, 0u);
  EXPECT_EQ(p.a.stream->emss(), kBase - 52);
}

TEST(PathSearch, ATimeoutWithoutAProbeIsNoLostProbe) {
  RawPeer p;
  three_in_flight(p);
  p.wait(seconds(1));
  EXPECT_GT(p.stack.counters().timeouts, 0u);
  EXPECT_EQ(p.stack.counters().mtu_probes_lost, 0u);
}

// TUF-5.1: the larger EMSS is reported for one record, then the old one until it is confirmed.
TEST(PathSearch, TheLargerSizeIsGoodForOneRecord) {
  tcp::Config config;
  config.mtu_probe_from_base = true;
  Pair p(config, {});
  ASSERT_TRUE(p.open());
  std::vector<uint32_t> sizes;
  p.link.seen = [&](const LinkFrame& f) {
    if (f.from_a && f.payload() != 0) sizes.push_back(f.payload());
  };
  for (int i = 0; i < 40; ++i) p.a.queue(1448);
  p.link.run(microseconds(600));  // the first window, no answer yet
  EXPECT_EQ(std::count(sizes.begin(), sizes.end(), 1448u), 1);
  for (const uint32_t size : sizes) EXPECT_TRUE(size == 1448 || size <= 1024 - 52) << size;
  ASSERT_TRUE(p.drain());
  EXPECT_EQ(p.a.stream->emss(), 1448u);
}

// A user may not know what it has to send: a probe that finds nothing to carry holds no FIN back.
TEST(PathSearch, AProbeOfNothingLetsTheFinGo) {
  tcp::Config config;
  config.mtu_probe_from_base = true;
  Pair p(config, {});
  ASSERT_TRUE(p.open());
  p.a.stream->ready();
  p.a.stream->close();
  p.link.run(seconds(1));
  EXPECT_EQ(p.link.a.counters().mtu_probes, 0u);
  EXPECT_TRUE(p.b.peer_has_finished);
}

// Raised by time alone, by the table of the IP layer.
TEST(PathMtu, FollowsTheTableOfTheIpLayer_TCP_1191_6_3_01) {
  Pair p;
  ASSERT_TRUE(p.open());
  for (const uint32_t mtu : {1500u, 1300u, 600u, 1500u, 9000u, 900u, 1500u}) {
    p.link.egress_a.mtu = mtu;
    for (int i = 0; i < 50; ++i) p.a.queue(1400);
    ASSERT_TRUE(p.drain());
    EXPECT_EQ(p.a.stream->emss(), std::min(mtu, 1500u) - 52);
  }
  EXPECT_TRUE(p.b.clean());
}

TEST(PathMtu, ShrinksAtEveryPointAndGrowsBack) {
  // The MTU changes after each k-th frame: records in flight are cut, later ones are whole.
  for (uint64_t k = 1; k < 40; ++k) {
    Pair p;
    ASSERT_TRUE(p.open());
    const uint64_t at = p.link.frames_from_a + k;
    p.link.hook = [&](const LinkFrame& f) {
      if (f.from_a && f.number == at) p.link.egress_a.mtu = 700;
      if (f.from_a && f.number == at + 40) p.link.egress_a.mtu = 1500;
      return Fate{.drop = f.from_a && f.number > at && f.number < at + 6};
    };
    for (int i = 0; i < 60; ++i) p.a.queue(1448);
    ASSERT_TRUE(p.drain()) << k;
    EXPECT_TRUE(p.b.clean()) << k;
    for (int i = 0; i < 20; ++i) p.a.queue(1448);
    const uint64_t aligned = p.link.a.counters().aligned_segments_out;
    ASSERT_TRUE(p.drain()) << k;
    EXPECT_GE(p.link.a.counters().aligned_segments_out - aligned, 20u) << k;
  }
}

}  // namespace
}  // namespace rnic::testing

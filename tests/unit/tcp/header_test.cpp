#include "base/prng.hpp"
#include "pair.hpp"
#include "raw_peer.hpp"
#include "tcp/byte_stream.hpp"
#include "tcp/isn.hpp"
#include "tcp/rto_estimator.hpp"

namespace rnic::testing {
namespace {

/// Octets of a header as they stand, the checksum vouched for.
void inject_raw(RawPeer& p, const std::vector<uint8_t>& octets) {
  p.stack.input({.source = RawPeer::kPeer,
                 .destination = RawPeer::kUs,
                 .tcp = octets,
                 .checksum_verified = true},
                p.now);
  p.stack.output(p.now);
}

std::vector<uint8_t> header(uint32_t seq, uint32_t ack, uint8_t flags, uint16_t window = 65535) {
  std::vector<uint8_t> t(20);
  wire::write_tcp(t.data(), {.source_port = RawPeer::kPeerPort,
                             .destination_port = RawPeer::kOurPort,
                             .sequence = base::Seq32(seq),
                             .acknowledgment = base::Seq32(ack),
                             .flags = flags,
                             .window = window});
  return t;
}

TEST(Header, WindowsAreUnsignedAnd32BitsWide_TCP_9293_3_1_02) {
  RawPeer p;
  p.accept(option_mss(1460), {}, 0xffff);  // a signed 16-bit window would be negative
  for (int i = 0; i < 60; ++i) p.user.queue(1460);
  for (int i = 0; i < 60 && p.user.released_to + 1460 < 65535; ++i) {
    p.stack.output(p.now);
    p.inject({.seq = kIrs + 1,
              .ack = kIss + 1 + static_cast<uint32_t>(p.user.pulled),
              .flags = flag::kAck,
              .window = 0xffff});
  }
  EXPECT_GT(p.user.pulled, 32768u);
  EXPECT_EQ(p.stack.info(*p.user.stream, p.now)->snd_wnd, 65535u);
  tcp::Config scaled;
  RawPeer q(scaled);
  q.acceptor.next.push_back(&q.user);
  q.inject({.seq = kIrs,
            .flags = flag::kSyn,
            .options = option_mss(1460) + std::vector<uint8_t>{1, 3, 3, 14}});
  q.next();
  q.inject({.seq = kIrs + 1, .ack = kIss + 1, .flags = flag::kAck, .window = 0xffff});
  EXPECT_EQ(q.stack.info(*q.user.stream, q.now)->snd_wnd, 65535u << 14);
}

TEST(Header, ReservedBitsAreIgnoredAndSentAsZero_TCP_9293_3_1_03) {
  RawPeer p;
  p.accept();
  auto t = header(kIrs + 1, kIss + 1, flag::kAck | flag::kPsh);
  t[12] |= 0x0f;  // the four reserved bits
  t.resize(30);
  for (uint32_t i = 0; i < 10; ++i) t[20 + i] = octet_at(i, 22);
  inject_raw(p, t);
  EXPECT_EQ(p.user.ordered_to, 10u);
  EXPECT_TRUE(p.user.clean());
  std::array<uint8_t, 20> out{};
  wire::write_tcp(out.data(), {.flags = 0xff, .header_length = 60});
  EXPECT_EQ(out[12] & 0x0f, 0);
}

TEST(Header, OptionsOfAnySegmentAtAnyAlignment_TCP_9293_3_1_04) {
  // An unknown option, NOPs, MSS at an odd place, then the end and rubbish behind it.
  const std::vector<uint8_t> odd{1, 253, 5, 9, 9, 9, 1, 2, 4, 0x03, 0xe8, 0, 77, 1, 255, 0};
  tcp::Config config = RawPeer::bare();
  RawPeer p(config);
  p.acceptor.next.push_back(&p.user);
  p.inject({.seq = kIrs, .flags = flag::kSyn, .options = odd});
  p.expect({.flags = flag::kSyn | flag::kAck});
  p.inject({.seq = kIrs + 1, .ack = kIss + 1, .flags = flag::kAck, .options = {1, 1, 1, 0}});
  ASSERT_TRUE(p.user.is_established);
  EXPECT_EQ(p.user.established_emss, 1000u);
  p.inject({.seq = kIrs + 1, .ack = kIss + 1, .flags = flag::kAck, .payload = 10, .options = odd});
  EXPECT_EQ(p.user.ordered_to, 10u);
}

TEST(Header, EveryMalformedOptionAndHeaderLengthIsSurvived_TCP_9293_3_1_05) {
  RawPeer p;
  p.accept();
  uint64_t malformed = p.stack.counters().malformed;
  for (uint32_t offset = 0; offset < 16; ++offset) {  // every data offset over every length
    for (size_t length = 0; length <= 64; ++length) {
      auto t = header(kIrs + 1, kIss + 1, flag::kAck);
      t.resize(std::max<size_t>(length, 20));
      t[12] = static_cast<uint8_t>(offset << 4);
      t.resize(length);
      inject_raw(p, t);
      const bool fits = offset >= 5 && offset * 4 <= length;
      const uint64_t now = p.stack.counters().malformed;
      ASSERT_EQ(now - malformed, fits ? 0u : 1u) << offset << " of " << length;
      malformed = now;
    }
  }
  // Every kind with every length, at every place of the options.
  for (uint32_t kind = 2; kind < 256; kind += kind < 10 ? 1 : 41) {
    for (uint32_t length = 0; length < 256; length += length < 44 ? 1 : 53) {
      for (uint32_t at = 0; at < 40; at += 3) {
        auto t = header(kIrs + 1, kIss + 1, flag::kAck);
        t.resize(60, 1);
        t[12] = 15 << 4;
        t[20 + at] = static_cast<uint8_t>(kind);
        if (at + 1 < 40) t[21 + at] = static_cast<uint8_t>(length);
        inject_raw(p, t);
        const bool legal = at + 1 < 40 && length >= 2 && at + length <= 40;
        const uint64_t now = p.stack.counters().malformed;
        ASSERT_EQ(now - malformed, legal ? 0u : 1u) << kind << " " << length << " at " << at;
        malformed = now;
      }
    }
  }
  EXPECT_FALSE(p.user.how_ended);
  const uint64_t before = p.user.ordered_to;
  p.data(static_cast<uint32_t>(before), 10);
  EXPECT_EQ(p.user.ordered_to, before + 10);
}

// TCP-7323-2.2-01
TEST(Header, WhatBelongsToASynIsIgnoredElsewhere_TCP_9293_3_7_1_01_TCP_2018_2_01) {
  tcp::Config config;
  config.timestamps = false;
  RawPeer p(config);
  p.accept(option_mss(1000));
  p.inject(
      {.seq = kIrs + 1,
       .ack = kIss + 1,
       .flags = flag::kAck,
       .window = 1000,
       .options = option_mss(300) + option_sack_permitted() + std::vector<uint8_t>{1, 3, 3, 7}});
  EXPECT_EQ(p.user.stream->emss(), 1000u);
  const auto info = *p.stack.info(*p.user.stream, p.now);
  EXPECT_FALSE(info.sack);
  EXPECT_EQ(info.snd_wnd, 1000u);
  p.data(10, 10);  // out of order: no SACK without the permission
  p.expect({.options = kinds::kNone});
}

TEST(Header, SackOptionsOfOneToFourBlocksAndMalformedOnes_TCP_2018_2_01) {
  for (uint32_t length = 0; length <= 38; ++length) {
    std::vector<uint8_t> octets(40, 1);
    octets[0] = 5;
    octets[1] = static_cast<uint8_t>(length);
    wire::TcpOptions o;
    const bool good = o.parse(octets);
    EXPECT_EQ(good, length >= 2) << length;
    const bool blocks = length >= 10 && (length - 2) % 8 == 0 && length <= 34;
    EXPECT_EQ(o.sack_count, blocks ? (length - 2) / 8 : 0) << length;
  }
  tcp::Config config;
  config.timestamps = config.window_scaling = false;
  RawPeer p(config);
  p.accept(option_mss(1000) + option_sack_permitted());
  for (int i = 0; i < 4; ++i) p.user.queue(1000);
  p.stack.output(p.now);
  // Blocks that are empty, upside down, beyond SND.NXT or below SND.UNA mark nothing.
  const uint32_t una = kIss + 1;
  p.inject({.seq = kIrs + 1,
            .ack = una,
            .flags = flag::kAck,
            .options = option_sack(
                {{una + 1000, una + 1000}, {una + 3000, una + 2000}, {una + 3000, una + 4001}})});
  p.inject({.seq = kIrs + 1,
            .ack = una,
            .flags = flag::kAck,
            .options = option_sack({{una - 900, una - 100}, {una - 100, una}})});
  EXPECT_EQ(p.stack.info(*p.user.stream, p.now)->sacked, 0u);
}

TEST(Header, WhatWasSackedIsNeverAskedForAgain_TCP_2018_8_01) {
  tcp::Config config;
  config.timestamps = config.window_scaling = false;
  config.receive_window = 20000;
  RawPeer p(config);
  p.accept(option_mss(1000) + option_sack_permitted());
  base::Prng random(5);
  std::map<uint32_t, uint32_t> promised;
  for (int i = 0; i < 300; ++i) {
    const auto at = static_cast<uint32_t>(p.user.ordered_to + 1 + random.below(15000));
    p.data(at, static_cast<uint32_t>(random.between(1, 1000)));
    if (random.chance(0.1)) p.data(static_cast<uint32_t>(p.user.ordered_to), 1);
    if (random.chance(0.3)) p.user.room = static_cast<uint32_t>(random.below(20000));
    while (!p.silent()) {
      const Segment ack = p.next();
      for (uint32_t b = 0; b < ack.parsed.sack_count; ++b) {
        promised[ack.parsed.sack[b].left.value] = ack.parsed.sack[b].right.value;
      }
    }
  }
  uint32_t end = 0;
  for (const auto& [left, right] : promised) {
    for (uint32_t seq = left; seq != right; ++seq) {
      ASSERT_TRUE(p.user.got[seq - (kIrs + 1)]);  // handed up, for good
    }
    end = std::max(end, right - (kIrs + 1));
  }
  // Only what never came is sent now: the rest is acknowledged without another copy.
  for (uint32_t at = 0; at < end; ++at) {
    if (at >= p.user.got.size() || !p.user.got[at]) p.data(at, 1);
  }
  EXPECT_GE(p.user.ordered_to, end);
  EXPECT_TRUE(p.user.clean());
}

TEST(Urgent, IsToldAndLeavesTheStreamAlone_TCP_9293_3_8_5_01) {
  struct OneStream final : llp::Acceptor {
    llp::StreamUser* accept(llp::Stream& s, const Endpoint&, const Endpoint&, base::Now) override {
      user.attach(s);
      return &user;
    }
    tcp::ByteStream user{4096};
  } one;
  RawPeer p;
  ASSERT_TRUE(p.stack.unlisten({RawPeer::kUs, RawPeer::kOurPort}).has_value());
  ASSERT_TRUE(p.stack.listen({RawPeer::kUs, RawPeer::kOurPort}, one).has_value());
  p.inject({.seq = kIrs, .flags = flag::kSyn});
  p.inject({.seq = kIrs + 1, .ack = kIss + 1, .flags = flag::kAck});
  const auto urgent = [&](uint32_t offset, uint16_t pointer, uint32_t length) {
    auto t = header(kIrs + 1 + offset, kIss + 1, flag::kAck | flag::kUrg);
    base::store_be16(&t[wire::kTcpUrgentPointerAt], pointer);
    for (uint32_t i = 0; i < length; ++i) t.push_back(octet_at(offset + i, 22));
    inject_raw(p, t);
  };
  urgent(0, 150, 0);  // announced ahead of its octets
  EXPECT_EQ(one.user.urgent(), 150u);
  p.data(0, 100);
  urgent(100, 1, 100);  // an older end changes nothing
  EXPECT_EQ(one.user.urgent(), 150u);
  EXPECT_EQ(p.stack.counters().urgent_in, 1u);
  urgent(200, 0, 10);    // no pointer at all
  urgent(310, 400, 10);  // ahead of octets that are missing: counted from its own number
  EXPECT_EQ(one.user.urgent(), 710u);
  urgent(210, 0xffff, 10);  // beyond all octets
  EXPECT_EQ(one.user.urgent(), 210u + 0xffff);
  std::vector<uint8_t> out(300);
  ASSERT_EQ(one.user.read(out), 220u);
  for (uint32_t i = 0; i < 220; ++i) ASSERT_EQ(out[i], octet_at(i, 22)) << i;
  EXPECT_EQ(one.user.urgent(), 0xffffu - 10);
}

TEST(Header, AZeroWindowStillHearsAckRstAndUrg_TCP_9293_3_10_04) {
  for (const bool reset : {false, true}) {
    RawPeer p;
    p.user.room = 0;
    p.acceptor.next.push_back(&p.user);
    p.inject({.seq = kIrs, .flags = flag::kSyn, .options = option_mss(1000)});
    p.inject({.seq = kIrs + 1, .ack = kIss + 1, .flags = flag::kAck});
    // The window of the SYN-ACK is used up.
    for (uint32_t at = 0; at < 65535; at += 5 * 13107) {
      for (uint32_t k = 0; k < 5; ++k) p.data(k * 13107, 13107);
    }
    ASSERT_EQ(p.user.ordered_to, 65535u);
    ASSERT_EQ(p.stack.info(*p.user.stream, p.now)->rcv_wnd, 0u);
    p.send_record(500);
    p.egress.sent.clear();
    const uint32_t nxt = kIrs + 1 + 65535;
    if (reset) {
      p.inject({.seq = nxt, .flags = flag::kRst});
      EXPECT_EQ(*p.user.how_ended, StreamEnd::PeerReset);
      continue;
    }
    p.inject({.seq = nxt, .ack = kIss + 501, .flags = flag::kAck, .payload = 100});
    EXPECT_EQ(p.user.released_to, 500u);   // the ACK counted,
    EXPECT_EQ(p.user.ordered_to, 65535u);  // the text did not
    auto t = header(nxt, kIss + 501, flag::kAck | flag::kUrg);
    base::store_be16(&t[wire::kTcpUrgentPointerAt], 20);
    inject_raw(p, t);
    EXPECT_EQ(p.stack.counters().urgent_in, 1u);
  }
}

// The burst is answered once whether each of its segments is the expected one or begins with an
// octet that is known.
TEST(Header, ABurstIsAnsweredOnce_TCP_9293_3_10_05) {
  RawPeer p;
  p.accept();
  p.hold_output = true;
  for (uint32_t i = 0; i < 16; ++i) p.data(i * 1000, 1000);
  p.stack.output(p.now);
  EXPECT_EQ(p.egress.sent.size(), 1u);
  p.expect({.ack = kIrs + 1 + 16000});
  for (uint32_t i = 16; i < 32; ++i) p.data(i * 1000 - 1, 1001);
  p.stack.output(p.now);
  EXPECT_EQ(p.egress.sent.size(), 1u);
  p.expect({.ack = kIrs + 1 + 32000});
}

TEST(Header, OpensLeaveOthersAloneAndGoToUnicastOnly_TCP_9293_3_9_1_01) {
  Pair p;
  ASSERT_TRUE(p.open());
  UserAcceptor other;
  ASSERT_TRUE(p.link.b.listen({kAddressB, 4421}, other).has_value());
  RecordUser u{1, 2};
  for (const char* text : {"224.0.0.1", "255.255.255.255", "0.0.0.0", "ff02::1", "::"}) {
    const auto to = parse_ip(text);
    ASSERT_TRUE(to.has_value());
    EXPECT_FALSE(p.link.a.connect({kAddressA, 0}, {*to, 80}, u, p.link.now).has_value()) << text;
  }
  p.a.queue(1000);
  EXPECT_TRUE(p.drain());
  EXPECT_TRUE(p.b.clean());
}

TEST(Rto, NothingIsMeasuredOnWhatWasSentTwice_TCP_9293_3_8_1_01) {
  RawPeer p;  // no timestamps
  p.accept();
  const auto srtt = p.stack.info(*p.user.stream, p.now)->srtt;
  p.send_record(100);
  p.wait(milliseconds(1500));  // sent again meanwhile
  EXPECT_GE(p.stack.counters().retransmitted_segments, 1u);
  p.inject({.seq = kIrs + 1, .ack = kIss + 101, .flags = flag::kAck});
  EXPECT_EQ(p.stack.info(*p.user.stream, p.now)->srtt, srtt);
  p.send_record(100);
  p.wait(milliseconds(100));
  p.inject({.seq = kIrs + 1, .ack = kIss + 201, .flags = flag::kAck});
  EXPECT_NE(p.stack.info(*p.user.stream, p.now)->srtt, srtt);
}

TEST(Rto, FollowsTheFormulas_TCP_6298_2_01) {
  tcp::Config config;
  config.rto_min = seconds(1);
  EXPECT_GE(config.rto_max, seconds(60));
  tcp::RtoEstimator e(config);
  EXPECT_EQ(e.rto(), seconds(1));  // (2.1)
  base::Now now = base::from_nanos(0);
  e.sample(milliseconds(800), now);  // (2.2): SRTT = R, RTTVAR = R/2
  EXPECT_EQ(e.srtt(), milliseconds(800));
  EXPECT_EQ(e.rttvar(), milliseconds(400));
  EXPECT_EQ(e.rto(), milliseconds(2400));
  e.sample(milliseconds(1600), now);  // (2.3): RTTVAR first
  EXPECT_EQ(e.rttvar(), milliseconds(500));
  EXPECT_EQ(e.srtt(), milliseconds(900));
  EXPECT_EQ(e.rto(), milliseconds(2900));
  for (int i = 0; i < 100; ++i) e.sample(milliseconds(1), now);
  EXPECT_EQ(e.rto(), seconds(1));  // (2.4)
  for (int i = 0; i < 20; ++i) e.back_off();
  EXPECT_EQ(e.rto(), config.rto_max);  // (2.5)
}

TEST(Rto, IsThreeSecondsAfterALostSyn_TCP_6298_5_02) {
  RawPeer p;
  const Segment syn = p.connect();
  p.wait(milliseconds(1100));
  p.expect({.flags = flag::kSyn});
  p.inject({.seq = kIrs,
            .ack = syn.seq + 1,
            .flags = flag::kSyn | flag::kAck,
            .options = option_mss(1000)});
  EXPECT_EQ(p.stack.info(*p.user.stream, p.now)->rto, seconds(3));
}

// TCP-7323-2.4-01-a. With prediction the text beside the next segment takes a short way, without it
// the steps of s.3.10.7.4.
TEST(Window, OctetsOfAWindowOnceOfferedStayAcceptable_TCP_7323_2_4_01) {
  for (const bool prediction : {true, false}) {
    SCOPED_TRACE(prediction);
    tcp::Config config;
    config.timestamps = config.sack = false;
    config.receive_window = 1 << 20;  // a shift of 5
    RawPeer p(config);
    p.stack.set_prediction(prediction);
    p.user.room = 100'000;
    p.accept(option_mss(1000) + std::vector<uint8_t>{1, 3, 3, 0});
    uint64_t edge = 0;
    uint64_t told = 0;
    const auto take_ack = [&] {
      const Segment ack = p.next();
      told = ack.ack - (kIrs + 1) + (uint64_t{ack.window} << 5);
      // Scaling rounds down, by less than one unit.
      EXPECT_GT(told + 32, edge);
      edge = std::max(edge, told);
    };
    for (uint32_t at = 0; at < 777 * 63; at += 777) {
      p.user.room = 100'000 - at;  // the reader does not read: the edge stands
      p.data(at, 777, flag::kPsh);
      take_ack();
    }
    // The latest ACK took some octets back, as far as the peer can see; they were offered once.
    ASSERT_LT(told, edge);
    const uint64_t places = p.user.places.size();
    for (const uint64_t beyond : {edge, edge + 31}) p.data(static_cast<uint32_t>(beyond), 1);
    EXPECT_EQ(p.user.places.size(), places);
    p.data(static_cast<uint32_t>(edge - 1), 1);
    ASSERT_EQ(p.user.places.size(), places + 1);
    EXPECT_EQ(p.user.places.back(), (base::Range{edge - 1, edge}));
  }
}

TEST(Timestamps, TickEachMillisecondAndAge_TCP_7323_5_02) {
  tcp::Config config = RawPeer::bare();
  config.timestamps = true;
  RawPeer p(config);
  p.accept(option_mss(1000) + option_timestamps(1000, 0), option_timestamps(1001, 0));
  const auto stamp = [&] {
    p.send_record(10);
    const Segment s = p.next();
    p.inject({.seq = kIrs + 1,
              .ack = kIss + 1 + static_cast<uint32_t>(p.user.pulled),
              .flags = flag::kAck,
              .options = option_timestamps(1001, s.parsed.timestamps->value)});
    return s.parsed.timestamps->value;
  };
  const uint32_t first = stamp();
  p.now += seconds(10);
  const uint32_t ticks = stamp() - first;
  EXPECT_GE(ticks, 10u);
  EXPECT_LE(ticks, 10'000u);
  const auto old = [&](uint32_t at) {
    p.inject({.seq = kIrs + 1 + at,
              .ack = kIss + 1 + static_cast<uint32_t>(p.user.pulled),
              .flags = flag::kAck,
              .payload = 10,
              .options = option_timestamps(500, 0)});
  };
  old(0);
  EXPECT_EQ(p.user.ordered_to, 0u);  // PAWS
  p.now += std::chrono::hours(24 * 23);
  old(0);
  EXPECT_EQ(p.user.ordered_to, 0u);
  p.now += std::chrono::hours(24 * 2);
  old(0);
  EXPECT_EQ(p.user.ordered_to, 10u);  // TS.Recent had become invalid
}

// RFC 7323 s.5.4, RFC 6191 s.2: the clock of a pair of endpoints stands at its secret offset at
// time 0 and counts milliseconds from there, for each incarnation of the connection.
TEST(Timestamps, TheClockOfAPairGoesOnThroughItsIncarnations) {
  tcp::Config config = RawPeer::bare();
  config.timestamps = true;
  RawPeer p(config);  // its secret is {1, 2}
  const uint32_t at_zero = tcp::timestamp_offset(tcp::keyed_hash(
      tcp::Secret{1, 2}, {RawPeer::kUs, RawPeer::kOurPort}, {RawPeer::kPeer, RawPeer::kPeerPort}));
  for (const uint32_t ms : {1000u, 1001u, 4711u}) {
    p.now = base::from_nanos(int64_t{ms} * 1'000'000);
    p.inject({.seq = kIrs, .flags = flag::kSyn, .options = option_timestamps(1, 0)});
    p.expect({.flags = kSynAck, .ts_value = at_zero + ms});
    p.inject({.seq = kIrs + 1, .flags = flag::kRst});
  }
}

// A segment that ends inside of the header that it announces is dropped and counted, also where all
// that is there of it is what the connection expects next.
TEST(Header, ATruncatedHeaderIsDroppedOnAPredictableConnection_TCP_9293_3_1_01) {
  tcp::Config config = RawPeer::bare();
  config.timestamps = true;
  RawPeer p(config);
  p.accept(option_mss(1460) + option_timestamps(1000, 0), option_timestamps(1001, 0));
  const auto text = [&](uint32_t length) {
    p.inject({.seq = kIrs + 1 + static_cast<uint32_t>(p.user.ordered_to),
              .ack = kIss + 1,
              .flags = flag::kAck,
              .payload = length,
              .options = option_timestamps(1001, 0)});
  };
  text(100);
  text(100);
  ASSERT_GT(p.stack.counters().predicted_in, 0u);
  const uint64_t predicted = p.stack.counters().predicted_in;
  std::vector<uint8_t> segment(32);
  wire::write_tcp(segment.data(), {.source_port = RawPeer::kPeerPort,
                                   .destination_port = RawPeer::kOurPort,
                                   .sequence = base::Seq32(kIrs + 201),
                                   .acknowledgment = base::Seq32(kIss + 1),
                                   .flags = flag::kAck,
                                   .window = 65535,
                                   .header_length = 32});
  const std::vector<uint8_t> options = option_timestamps(1001, 0);
  std::copy(options.begin(), options.end(), segment.begin() + 20);
  for (const size_t size : {20u, 24u, 31u}) {
    p.stack.input({.source = RawPeer::kPeer,
                   .destination = RawPeer::kUs,
                   .tcp = {segment.data(), size},
                   .checksum_verified = true,
                   .ecn = 0},
                  p.now);
  }
  EXPECT_EQ(p.stack.counters().malformed, 3u);
  EXPECT_EQ(p.stack.counters().predicted_in, predicted);
  EXPECT_EQ(p.user.ordered_to, 200u);
  text(100);
  EXPECT_EQ(p.user.ordered_to, 300u);
  EXPECT_TRUE(p.user.clean());
}

}  // namespace
}  // namespace rnic::testing

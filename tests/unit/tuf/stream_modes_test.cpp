// The user's face: modes of either direction, marker mode, what is read without regard to PDUs.
#include "framed_pair.hpp"
#include "support/mpa_fakes.hpp"

namespace rnic::tuf {
namespace {

Octets text(size_t n) {
  Octets octets(n);
  for (size_t i = 0; i < n; ++i) octets[i] = static_cast<uint8_t>(i * 31 + (i >> 7));
  return octets;
}

// Every mode can be chosen over our TCP, which is framing-aware.
TEST(Modes, EveryModeOverOurTcp_TUF_A_01_TUF_2_01_TUF_2_02) {
  FramedPair p;
  p.open();
  for (const FramedSendMode mode : {FramedSendMode::Plain, FramedSendMode::Atomic,
                                    FramedSendMode::Align, FramedSendMode::Markers}) {
    EXPECT_TRUE(p.a.supports(mode));
    EXPECT_TRUE(p.a.set_send_mode(mode, kKeyA)) << to_string(mode);
    EXPECT_EQ(p.a.send_mode(), mode);
  }
  for (const FramedReceiveMode mode :
       {FramedReceiveMode::Plain, FramedReceiveMode::Align, FramedReceiveMode::Markers}) {
    EXPECT_TRUE(p.b.set_receive_mode(mode, kKeyA)) << to_string(mode);
    EXPECT_EQ(p.b.receive_mode(), mode);
  }
  // s.5: the key stays.
  EXPECT_FALSE(p.a.set_send_mode(FramedSendMode::Align, kKeyB));
  EXPECT_EQ(p.a.send_mode(), FramedSendMode::Markers);
  // A key has 48 bits: what a caller hands in above them is no other key.
  EXPECT_TRUE(p.a.set_send_mode(FramedSendMode::Align, kKeyA | uint64_t{1} << 48));
  EXPECT_TRUE(p.a.set_send_mode(FramedSendMode::Align, kKeyA | uint64_t{1} << 63));
}

// What cannot be kept is refused; marker mode always works.
TEST(Modes, UnsupportedOnesFail_TUF_A_01_TUF_2_01_TUF_2_02) {
  test::FakeStream transport;  // an ordinary kernel's TCP
  transport.traits_value = {};
  Counters counters;
  FramedStream s({}, counters);
  s.attach(transport);
  s.established(1460, {});
  for (const FramedSendMode mode : {FramedSendMode::Atomic, FramedSendMode::Align}) {
    EXPECT_FALSE(s.supports(mode));
    const Status status = s.set_send_mode(mode, kKeyA);
    ASSERT_FALSE(status);
    EXPECT_EQ(status.error().code, ErrorCode::Unsupported);
    EXPECT_EQ(s.send_mode(), FramedSendMode::Plain);
  }
  EXPECT_TRUE(s.set_send_mode(FramedSendMode::Markers));
  EXPECT_FALSE(s.supports(FramedReceiveMode::Align));
  const Status blind = s.set_receive_mode(FramedReceiveMode::Align, kKeyA);
  ASSERT_FALSE(blind);
  EXPECT_EQ(blind.error().code, ErrorCode::Unsupported);
  EXPECT_EQ(s.receive_mode(), FramedReceiveMode::Plain);
  EXPECT_TRUE(s.set_receive_mode(FramedReceiveMode::Markers));
  // PDUs that do not tell their length cannot be found in a marked stream.
  StreamConfig opaque;
  opaque.framing.format = FrameFormat::opaque();
  FramedStream t(opaque, counters);
  EXPECT_FALSE(t.set_send_mode(FramedSendMode::Markers));
  EXPECT_FALSE(t.set_receive_mode(FramedReceiveMode::Markers));
  EXPECT_TRUE(t.set_receive_mode(FramedReceiveMode::Align, kKeyA));
}

// Before the connection is there, and after octets of another kind went by.
TEST(Modes, EnabledBeforeOrAfter_TUF_A_02) {
  for (const bool marked : {false, true}) {
    FramedPair before;
    ASSERT_TRUE(before.b.set_receive_mode(
        marked ? FramedReceiveMode::Markers : FramedReceiveMode::Align, kKeyA));
    before.connect();
    ASSERT_TRUE(
        before.a.set_send_mode(marked ? FramedSendMode::Markers : FramedSendMode::Align, kKeyA));
    before.link.run(seconds(1));
    for (uint32_t i = 0; i < 20; ++i) before.send(pdu(i, 50 + i));
    EXPECT_TRUE(before.deliver());

    FramedPair after;
    after.open();
    const Octets hello = text(3333);
    ASSERT_EQ(after.a.send(hello), SendResult::Ok);
    after.a.serve();
    after.link.run(seconds(1));
    Octets out(5000);
    ASSERT_EQ(after.b.read(out), hello.size());
    EXPECT_TRUE(std::equal(hello.begin(), hello.end(), out.begin()));
    if (marked) {
      after.markers(512);
    } else {
      after.align();
    }
    for (uint32_t i = 0; i < 20; ++i) after.send(pdu(i, 50 + i));
    EXPECT_TRUE(after.deliver());
  }
}

// Aligned one way, markers the other, at the same time.
TEST(Modes, EachDirectionHasItsOwn_TUF_4_01) {
  FramedPair p;
  p.open();
  p.align();
  ASSERT_TRUE(p.b.set_send_interval(300));
  ASSERT_TRUE(p.a.set_receive_interval(300));
  ASSERT_TRUE(p.b.set_send_mode(FramedSendMode::Markers));
  ASSERT_TRUE(p.a.set_receive_mode(FramedReceiveMode::Markers));
  std::vector<Octets> back, back_got;
  for (uint32_t i = 0; i < 60; ++i) {
    p.send(pdu(i, 20 + i * 20));
    back.push_back(pdu(1000 + i, 33 + i * 100));
    ASSERT_EQ(p.b.send(back.back()), SendResult::Ok);
  }
  p.b.serve();
  p.link.run_until(
      [&] {
        Octets out(65536);
        for (Received r = p.a.receive(out); r.kind == ReceiveKind::Pdu; r = p.a.receive(out)) {
          back_got.emplace_back(out.begin(), out.begin() + r.length);
        }
        p.a.serve();
        return p.b.unacknowledged() == 0 && back_got.size() == back.size();
      },
      seconds(60));
  EXPECT_EQ(back_got, back);
  EXPECT_TRUE(p.deliver());
}

// Nothing is added, and each buffer is exactly one segment.
TEST(Modes, Atomic_TUF_A_03_TUF_5_1_09) {
  FramedPair p;
  p.open();
  ASSERT_TRUE(p.a.set_send_mode(FramedSendMode::Atomic));
  EXPECT_EQ(p.a.usable_emss(), 1448u);
  EXPECT_EQ(p.a.send(text(1449)), SendResult::MessageSize);
  std::vector<Octets> buffers;
  Octets all;
  for (uint32_t i = 0; i < 100; ++i) {
    buffers.push_back(text(1 + i * 97 % 1448));
    all.insert(all.end(), buffers.back().begin(), buffers.back().end());
    ASSERT_EQ(p.a.send(buffers.back()), SendResult::Ok);
  }
  p.a.serve();
  Octets got;
  p.link.run_until(
      [&] {
        Octets out(9000);
        const uint32_t n = p.b.read(out);
        got.insert(got.end(), out.begin(), out.begin() + n);
        p.b.serve();
        return got.size() == all.size();
      },
      seconds(60));
  EXPECT_EQ(got, all);
  EXPECT_EQ(p.segments_a, buffers);
}

// Read without regard to PDUs, in pieces of any size: no header, no marker is in it.
TEST(Modes, ReadAsAStream_TUF_A_11) {
  for (const bool marked : {false, true}) {
    for (const size_t piece : {1u, 7u, 512u, 40000u}) {
      FramedPair p;
      p.open();
      if (marked) {
        p.markers(64);
      } else {
        p.align();
      }
      Octets all, got;
      for (uint32_t i = 0; i < 30; ++i) {
        p.send(pdu(i, 9 + i * 41));
        all.insert(all.end(), p.sent.back().begin(), p.sent.back().end());
      }
      p.link.run_until(
          [&] {
            Octets out(piece);
            while (const uint32_t n = p.b.read(out)) {
              got.insert(got.end(), out.begin(), out.begin() + n);
            }
            p.b.serve();
            return got.size() >= all.size();
          },
          seconds(60));
      EXPECT_EQ(got, all) << marked << piece;
      EXPECT_GT(p.image.size(), all.size());
    }
  }
}

// TUF-6-01 TUF-6-02 TUF-6-03 TUF-6-05 TUF-6-06: every marker of the stream against a plain count,
// for many intervals and lengths of PDUs, those of more than a segment among them.
// What read() has given of a PDU is not given again by receive(), and the mode stays meanwhile.
TEST(Modes, APduReadInPart_TUF_A_11) {
  FramedPair p;
  p.open();
  p.align();
  p.send(pdu(1, 100));
  p.send(pdu(2, 50));
  p.link.run(milliseconds(50));
  Octets part(40), rest(200);
  ASSERT_EQ(p.b.read(part), 40u);
  EXPECT_FALSE(p.b.set_receive_mode(FramedReceiveMode::Plain));
  EXPECT_EQ(p.b.receive(base::ByteSpan(rest).first(59)).kind, ReceiveKind::NoRoom);
  const Received received = p.b.receive(rest);
  EXPECT_EQ(received.kind, ReceiveKind::Pdu);
  ASSERT_EQ(received.length, 60u);
  const Octets whole = pdu(1, 100);
  EXPECT_TRUE(std::equal(part.begin(), part.end(), whole.begin()));
  EXPECT_TRUE(std::equal(rest.begin(), rest.begin() + 60, whole.begin() + 40));
  EXPECT_TRUE(p.b.set_receive_mode(FramedReceiveMode::Plain));
}

TEST(Markers, StandWhereTheyMust_TUF_6_01_TUF_6_02_TUF_6_03_TUF_6_05_TUF_6_06) {
  for (const uint16_t interval : {16, 17, 64, 512, 1448, 1460, 2048, 9999, 65535}) {
    FramedPair p;
    p.open();
    p.markers(interval);
    base::Prng random(interval);
    uint64_t total = 0;
    while (total < 180'000) {
      const size_t size =
          random.chance(0.1) ? random.between(2000, p.a.pdu_limit() / 4) : random.between(2, 900);
      if (p.a.send(pdu(static_cast<uint32_t>(total), size)) != SendResult::Ok) break;
      p.sent.push_back(pdu(static_cast<uint32_t>(total), size));
      total += size;
      p.a.serve();
    }
    ASSERT_TRUE(p.deliver()) << interval;
    // By hand: content octet by content octet.
    Octets expected;
    std::vector<size_t> marker_at;
    std::vector<size_t> begins;
    for (const Octets& one : p.sent) {
      for (size_t i = 0; i < one.size(); ++i) {
        if (expected.size() % interval == 0) {
          marker_at.push_back(expected.size());
          expected.insert(expected.end(), 4, 0xee);
        }
        if (i == 0) begins.push_back(expected.size());
        expected.push_back(one[i]);
      }
    }
    // Behind the last PDU nothing is sent; the next one would begin here.
    begins.push_back(expected.size() % interval == 0 ? expected.size() + 4 : expected.size());
    for (const size_t at : marker_at) {
      const size_t next = *std::lower_bound(begins.begin(), begins.end(), at + 4);
      base::store_be16(&expected[at], static_cast<uint16_t>(next - at - 4));
      base::store_be16(&expected[at + 2], static_cast<uint16_t>(next - at - 4));
    }
    EXPECT_EQ(Octets(p.image.begin(), p.image.begin() + 4), Octets(4)) << interval;
    ASSERT_EQ(p.image, expected) << interval;
    EXPECT_EQ(p.counters_a.markers_out, marker_at.size());
  }
}

// 65528 less 4 for each marker inside, to the octet; the longest one arrives.
// A limit of one's own, reported, and enforced at both ends.
TEST(Markers, TheLongestPdu_TUF_3_08_TUF_3_09_TUF_3_10) {
  for (const uint16_t interval : {16, 512, 2048, 65535}) {
    FramedPair p;
    p.open();
    p.markers(interval);
    for (uint32_t i = 0; i < 5; ++i) {
      const uint32_t most = p.a.pdu_limit();
      // By hand: the PDU begins behind p.image and the marker that may be due there.
      size_t at = p.image.size() % interval == 0 ? p.image.size() + 4 : p.image.size();
      const size_t begin = at;
      size_t content = 0;
      for (;;) {
        if (at % interval == 0) at += 4;
        if (at + 1 - begin > 65528) break;
        ++at;
        ++content;
      }
      EXPECT_EQ(most, content) << interval;
      EXPECT_EQ(p.a.send(pdu(i, most + 1)), SendResult::MessageSize);
      p.send(pdu(i, most));
      ASSERT_TRUE(p.deliver()) << interval;
    }
  }
  FramedPair p;
  p.open();
  p.a.set_max_pdu(3000);
  p.markers(2048);
  EXPECT_EQ(p.a.pdu_limit(), 3000u);
  EXPECT_EQ(p.a.send(pdu(1, 3001)), SendResult::MessageSize);
  p.send(pdu(1, 3000));
  EXPECT_TRUE(p.deliver());
  // The receiver's own limit bounds what it has to keep.
  p.b.set_max_pdu(2999);
  p.send(pdu(2, 3000));
  EXPECT_FALSE(p.deliver(seconds(1)));
  EXPECT_EQ(p.b.error(), framing::PduError::PduTooLong);
  EXPECT_EQ(p.counters_b.pdu_too_long_errors, 1u);
}

// Set at any time; it counts in marker mode, from the next marker on; the two
// directions differ.
TEST(Markers, IntervalsCanBeSetAtAnyTime_TUF_A_09_TUF_A_10) {
  EXPECT_EQ(FramingOptions{}.send_interval, 2048);
  EXPECT_EQ(FramingOptions{}.receive_interval, 2048);
  FramedPair p;
  ASSERT_TRUE(p.a.set_send_interval(777));  // not connected
  p.open();
  p.align();
  ASSERT_TRUE(p.a.set_send_interval(100));  // no markers here: no effect
  ASSERT_TRUE(p.b.set_receive_interval(999));
  p.send(pdu(0, 1200));
  ASSERT_TRUE(p.deliver());
  EXPECT_EQ(p.image.size(), 1208u);
  ASSERT_TRUE(p.b.set_receive_interval(100));
  ASSERT_TRUE(p.a.set_send_mode(FramedSendMode::Markers));
  ASSERT_TRUE(p.b.set_receive_mode(FramedReceiveMode::Markers));
  p.send(pdu(1, 1000));
  ASSERT_TRUE(p.deliver());
  EXPECT_EQ(p.counters_a.markers_out, 11u);
  // In the middle of it, at both ends.
  uint16_t old = 100;
  uint64_t grid = 1208;
  for (const uint16_t interval : {50, 3000, 16, 2048}) {
    const uint64_t from = p.image.size();
    const uint64_t change = grid + (from - grid + old - 1) / old * old;
    ASSERT_TRUE(p.a.set_send_interval(interval));
    ASSERT_TRUE(p.b.set_receive_interval(interval));
    for (uint32_t i = 0; i < 10; ++i) p.send(pdu(i, 1500));
    ASSERT_TRUE(p.deliver()) << interval;
    for (uint64_t at = change; at + 4 <= p.image.size(); at += interval) {
      EXPECT_EQ(p.image[at], p.image[at + 2]);
      EXPECT_EQ(p.image[at + 1], p.image[at + 3]);
    }
    grid = change;
    old = interval;
  }
  EXPECT_EQ(p.b.error(), framing::PduError::None);
  EXPECT_FALSE(p.a.set_send_interval(15));
  EXPECT_FALSE(p.b.set_receive_interval(0));
  // An end that does not follow notices.
  ASSERT_TRUE(p.a.set_send_interval(99));
  for (uint32_t i = 0; i < 20; ++i) p.send(pdu(i, 1500));
  EXPECT_FALSE(p.deliver(seconds(2)));
  EXPECT_NE(p.b.error(), framing::PduError::None);
}

// TUF-2-03 in marker mode, under loss, with retransmissions built again.
TEST(Markers, LossAndReordering_TUF_6_05) {
  for (uint64_t seed = 1; seed <= 20; ++seed) {
    FramedPair p;
    p.open();
    p.markers(static_cast<uint16_t>(16 + seed * 41));
    base::Prng random(seed);
    p.link.hook = [&](const testing::LinkFrame&) {
      if (random.chance(0.02)) {
        p.link.egress_a.mtu = static_cast<uint32_t>(random.between(300, 1500));
      }
      return testing::Fate{.drop = random.chance(0.05),
                           .extra = milliseconds(random.chance(0.1) ? 3 : 0)};
    };
    for (uint32_t i = 0; i < 60; ++i) p.send(pdu(i, random.between(2, 4000)));
    ASSERT_TRUE(p.deliver(seconds(600))) << seed;
    EXPECT_EQ(p.b.error(), framing::PduError::None);
  }
}

// One change at a time: the positions before it are still needed, to send again or to be read.
TEST(Markers, AChangeHasToBeOverBeforeTheNext) {
  FramedPair p;
  p.open();
  p.markers(100);
  p.send(pdu(0, 1000));
  ASSERT_TRUE(p.a.set_send_interval(200));
  ASSERT_TRUE(p.b.set_receive_interval(200));
  const Status sender = p.a.set_send_interval(300);
  ASSERT_FALSE(sender);
  EXPECT_EQ(sender.error().code, ErrorCode::WrongState);
  EXPECT_EQ(sender.error().message, "the interval was changed just now: wait for the peer's ACK");
  const Status receiver = p.b.set_receive_interval(300);
  ASSERT_FALSE(receiver);
  EXPECT_EQ(receiver.error().code, ErrorCode::WrongState);
  EXPECT_EQ(receiver.error().message,
            "the interval was changed just now: receive up to its marker");
  EXPECT_EQ(p.a.send_interval(), 200);
  EXPECT_EQ(p.b.receive_interval(), 200);
}

TEST(Modes, MarkerModeBeginsAtAKnownOctet) {
  FramedPair p;
  p.open();
  p.align();
  p.send(pdu(0, 500));
  const Status early = p.a.set_send_mode(FramedSendMode::Markers);
  ASSERT_FALSE(early);
  EXPECT_EQ(early.error().code, ErrorCode::WrongState);
  EXPECT_EQ(early.error().message,
            "marker mode begins at a known octet: wait until what was submitted is sent");
  EXPECT_EQ(p.a.send_mode(), FramedSendMode::Align);
  ASSERT_TRUE(p.deliver());
  EXPECT_TRUE(p.a.set_send_mode(FramedSendMode::Markers));
}

TEST(Words, EachHasItsOwn) {
  EXPECT_STREQ(to_string(SendResult::Ok), "ok");
  EXPECT_STREQ(to_string(SendResult::MessageSize),
               "EMSGSIZE: the size is outside of what can be sent now");
  EXPECT_STREQ(to_string(SendResult::Full), "the ring is full");
  EXPECT_STREQ(to_string(SendResult::Malformed), "the PDU's length field does not tell its length");
  EXPECT_STREQ(to_string(SendResult::Closed), "the stream is closed");
  EXPECT_STREQ(to_string(static_cast<SendResult>(99)), "unknown");
  EXPECT_STREQ(to_string(FramedReceiveMode::Plain), "plain");
  EXPECT_STREQ(to_string(framing::PduError::None), "none");
}

/// A stream by itself in alignment mode.
struct LoneStream {
  explicit LoneStream(const StreamConfig& config = {}, FramedStreamEvents* events = nullptr)
      : stream(config, counters, events) {
    stream.attach(transport);
    stream.established(1460, {});
    EXPECT_TRUE(stream.set_receive_mode(FramedReceiveMode::Align, kKeyA));
  }
  /// A segment in order.
  void place(uint64_t at, const Octets& octets) {
    stream.place({at, at + octets.size()}, octets, true, {});
    stream.ordered(at + octets.size(), {});
  }
  static Octets frame(size_t size) {
    Octets octets(wire::kTufHeaderSize + size);
    wire::store_tuf_header(octets.data(), {static_cast<uint16_t>(size), kKeyA});
    return octets;
  }

  test::FakeStream transport;
  Counters counters;
  FramedStream stream;
};

// What was told of a segment that is refused says nothing about the next one.
TEST(Aligned, ASegmentThatIsRefusedLeavesNothingBehind) {
  const StreamConfig config;
  for (const bool refused : {false, true}) {
    LoneStream s(config);
    s.stream.clipped({0, 4000});
    const base::Range beyond{config.ring_octets, config.ring_octets + 10u};
    if (refused) {
      EXPECT_EQ(s.stream.inspect(beyond, Octets(10), {}), llp::InspectVerdict::NoRoom);
    }
    s.place(0, LoneStream::frame(100));
    EXPECT_EQ(s.counters.aligned_segments_in, refused ? 1u : 0u);
    EXPECT_EQ(s.counters.unaligned_segments_in, refused ? 0u : 1u);
  }
}

// An owner that ignores the events is served all the same.
TEST(Aligned, AnOwnerNeedNotListen) {
  struct Silent final : FramedStreamEvents {
  } silent;
  StreamConfig config;
  config.framing.middlebox_limit = 1;
  LoneStream s(config, &silent);
  const Octets frame = LoneStream::frame(100);
  s.place(0, Octets(frame.begin(), frame.begin() + 50));
  s.place(50, Octets(frame.begin() + 50, frame.end()));
  EXPECT_EQ(s.counters.middlebox_suspected, 1u);
  s.stream.emss_changed(1000);
  EXPECT_EQ(s.stream.usable_emss(), 1000u);
  EXPECT_EQ(s.counters.emss_notices, 2u);
}

}  // namespace
}  // namespace rnic::tuf

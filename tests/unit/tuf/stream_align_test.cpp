// The user's face in alignment mode, end to end over TCP.
#include "framed_pair.hpp"
#include "support/mpa_fakes.hpp"

namespace rnic::tuf {
namespace {

/// An EMSS with timestamps on an MTU of 1500.
constexpr uint32_t kEmss = 1448;

// PDUs that wait together are packed, and still each segment is one whole framing PDU
// behind the last one, up to the very EMSS.
TEST(Aligned, APackedSegmentIsOneFramingPdu_TUF_5_1_01) {
  for (uint32_t size = 30; size < 60; ++size) {
    FramedPair p;
    p.open();
    p.align();
    for (uint32_t i = 0; i < 200; ++i) {
      p.sent.push_back(pdu(i, size));
      ASSERT_EQ(p.a.send(p.sent.back()), SendResult::Ok);
    }
    p.a.serve();
    ASSERT_TRUE(p.deliver());
    size_t at = 0;
    for (const Octets& s : p.segments_a) {
      EXPECT_TRUE(is_frame(s, kKeyA)) << size << " at " << at;
      EXPECT_TRUE(std::equal(s.begin(), s.end(), p.image.begin() + static_cast<long>(at)));
      at += s.size();
    }
    EXPECT_EQ(at, p.image.size());
    EXPECT_EQ(p.counters_b.aligned_segments_in, p.segments_a.size());
  }
}

// Octets on the wire; each segment is one framing PDU.
TEST(Aligned, EachSegmentIsOneFramingPdu_TUF_5_01_TUF_5_04_TUF_5_1_01) {
  StreamConfig config;
  config.framing.packing = false;
  FramedPair p(config);
  p.open();
  p.align();
  for (uint32_t i = 0; i < 50; ++i) p.send(pdu(i, 3 + i * 29 % 1400));
  ASSERT_TRUE(p.deliver());
  ASSERT_EQ(p.segments_a.size(), 50u);
  size_t at = 0;
  for (size_t i = 0; i < 50; ++i) {
    const Octets& s = p.segments_a[i];
    EXPECT_TRUE(is_frame(s, kKeyA));
    EXPECT_FALSE(is_frame(s, kKeyB));
    EXPECT_EQ(s[0] * 256u + s[1], p.sent[i].size());
    EXPECT_EQ(Octets(s.begin() + 2, s.begin() + 8), (Octets{0x01, 0x23, 0x45, 0x67, 0x89, 0xab}));
    EXPECT_EQ(Octets(s.begin() + 8, s.end()), p.sent[i]);
    // The length field alone leads from one framing PDU to the next.
    EXPECT_EQ(p.image[at] * 256u + p.image[at + 1], p.sent[i].size());
    at += 8 + p.sent[i].size();
  }
  EXPECT_EQ(at, p.image.size());
  EXPECT_EQ(p.counters_b.aligned_segments_in, 50u);
  EXPECT_EQ(p.counters_b.unaligned_segments_in, 0u);
}

// The longest PDU is one segment of EMSS octets; one more is
// refused and leaves no trace.
TEST(Aligned, TheLongestPdu_TUF_3_01_TUF_3_02_TUF_A_04_TUF_A_06) {
  FramedPair p;
  p.open();
  p.align();
  EXPECT_EQ(p.a.stream()->emss(), kEmss);  // 1500 - 20 - 20 - 12 of timestamps
  EXPECT_EQ(p.a.usable_emss(), kEmss - 8);
  EXPECT_EQ(p.a.send(pdu(0, kEmss - 7)), SendResult::MessageSize);
  EXPECT_EQ(p.counters_a.message_size_errors, 1u);
  p.link.run(seconds(1));
  EXPECT_TRUE(p.segments_a.empty());
  p.send(pdu(1, kEmss - 8));
  ASSERT_TRUE(p.deliver());
  ASSERT_EQ(p.segments_a.size(), 1u);
  EXPECT_EQ(p.segments_a[0].size(), kEmss);
  EXPECT_TRUE(is_frame(p.segments_a[0], kKeyA));
}

// Off: exactly one PDU in each framing PDU, although many wait together.
// On, which is the default: as many whole ones as fit EMSS; the segments are
// about as few as those of a plain TCP.
TEST(Aligned, Packing_TUF_5_05_TUF_5_06_TUF_5_3_03_TUF_A_07) {
  EXPECT_TRUE(FramingOptions{}.packing);
  for (const bool packing : {true, false}) {
    FramedPair p;
    p.open();
    p.align();
    EXPECT_TRUE(p.a.packing());
    p.a.set_packing(packing);
    uint32_t octets = 0;
    for (uint32_t i = 0; i < 400; ++i) {
      const Octets one = pdu(i, 40 + i % 5);
      ASSERT_EQ(p.a.send(one), SendResult::Ok);
      p.sent.push_back(one);
      octets += static_cast<uint32_t>(one.size());
    }
    p.a.serve();
    ASSERT_TRUE(p.deliver());
    for (const Octets& s : p.segments_a) EXPECT_TRUE(is_frame(s, kKeyA));
    if (packing) {
      EXPECT_LE(p.segments_a.size(), octets / kEmss + 2);
      EXPECT_EQ(p.counters_a.packed_pdus_out, 400u);
    } else {
      EXPECT_EQ(p.segments_a.size(), 400u);  // TCP_NODELAY
      EXPECT_EQ(p.counters_a.packed_pdus_out, 0u);
    }
    EXPECT_EQ(p.counters_a.pdus_out, 400u);
  }
}

// Emergency mode counts below an EMSS of 512 only;
// there PDUs of up to 512 octets are taken, cut, and delivered whole.
TEST(Aligned, Emergency_TUF_3_03_TUF_3_04_TUF_3_05_TUF_5_2_01_TUF_A_08) {
  EXPECT_FALSE(FramingOptions{}.emergency);
  FramedPair p;
  p.a.set_emergency(true);  // not even connected
  p.a.set_emergency(false);
  p.open();
  p.align();
  for (const uint32_t emss : {1448u, 513u, 512u, 511u, 300u, 100u, 64u}) {
    tcp::ConnectionOptions options = p.link.a.options(*p.a.stream());
    options.max_segment = static_cast<uint16_t>(emss);
    ASSERT_TRUE(p.link.a.set_options(*p.a.stream(), options, p.link.now));
    p.link.run(milliseconds(1));
    p.a.set_emergency(false);
    const uint32_t plain = emss - 8;
    EXPECT_EQ(p.a.pdu_limit(), plain) << emss;
    EXPECT_EQ(p.a.send(pdu(1, plain + 1)), SendResult::MessageSize);
    p.a.set_emergency(true);
    EXPECT_EQ(p.a.pdu_limit(), emss < 512 ? 512 : plain) << emss;
    EXPECT_EQ(p.a.usable_emss(), plain);  // what is not fragmented stays the same
    EXPECT_EQ(p.a.send(pdu(1, p.a.pdu_limit() + 1)), SendResult::MessageSize);
    const size_t before = p.segments_a.size();
    for (uint32_t i = 0; i < 20; ++i) p.send(pdu(i, p.a.pdu_limit() - i));
    ASSERT_TRUE(p.deliver()) << emss;
    if (emss < 512) {
      EXPECT_GT(p.segments_a.size() - before, 20u);
    } else {
      EXPECT_EQ(p.segments_a.size() - before, 20u);
    }
    for (size_t i = before; i < p.segments_a.size(); ++i) {
      EXPECT_LE(p.segments_a[i].size(), emss);
    }
  }
  EXPECT_EQ(p.b.error(), framing::PduError::None);
}

/// Everything a stream has to send, by pulls of `emss`; each record is one segment.
std::vector<Octets> pull_all(FramedStream& s, uint32_t emss, uint64_t& offset) {
  std::vector<Octets> records;
  for (;;) {
    Octets room(emss);
    llp::Frame frame(room.data(), emss);
    const llp::Pulled pulled = s.pull(emss, offset, frame, {});
    if (pulled.length == 0) return records;
    room.resize(pulled.length);
    offset += pulled.length;
    records.push_back(room);
  }
}

// With no room for a PDU every submission fails, unless in emergency mode; the stream
// goes on when there is room again. (Below what our TCP serves: pulled by hand.)
TEST(Aligned, AnEmssOfEightOctets_TUF_3_11_TUF_3_03) {
  test::FakeStream transport;
  Counters counters;
  FramedStream s({}, counters);
  FramedStream reader({}, counters);
  s.attach(transport);
  s.established(1448, {});
  ASSERT_TRUE(s.set_send_mode(FramedSendMode::Align, kKeyA));
  ASSERT_TRUE(reader.set_receive_mode(FramedReceiveMode::Align, kKeyA));
  uint64_t offset = 0;
  uint64_t arrived = 0;
  for (const uint32_t emss : {20u, 9u, 8u, 7u, 1u, 0u, 3u, 1448u}) {
    s.emss_changed(emss);
    s.set_emergency(false);
    for (const size_t size : {2u, 3u, 100u}) {
      const bool fits = size + 8 <= emss;
      EXPECT_EQ(s.send(pdu(0, size)), fits ? SendResult::Ok : SendResult::MessageSize);
    }
    s.set_emergency(true);
    if (emss < 512) {
      EXPECT_EQ(s.send(pdu(5, 512)), SendResult::Ok);
      EXPECT_EQ(s.send(pdu(5, 513)), SendResult::MessageSize);
    }
    if (emss == 0) continue;
    for (const Octets& record : pull_all(s, emss, offset)) {
      EXPECT_LE(record.size(), emss);
      reader.place({arrived, arrived + record.size()}, record, true, {});
      arrived += record.size();
      reader.ordered(arrived, {});
    }
  }
  std::vector<size_t> sizes;
  Octets out(2000);
  for (Received r = reader.receive(out); r.kind == ReceiveKind::Pdu; r = reader.receive(out)) {
    sizes.push_back(r.length);
  }
  EXPECT_EQ(sizes, (std::vector<size_t>{2, 3, 512, 512, 512, 512, 512, 512, 512, 2, 3, 100}));
}

// Each change of EMSS is told, before the next PDU is taken, and the
// query gives what was told last.
TEST(Aligned, EmssIsToldAndAsked_TUF_3_06_TUF_3_07_TUF_5_1_05) {
  FramedPair p;
  p.open();
  p.align();
  ASSERT_EQ(p.notices_a.emss.back(), kEmss - 8);
  std::vector<uint32_t> expected = p.notices_a.emss;
  for (const uint32_t mtu : {1300u, 700u, 701u, 1500u, 600u}) {
    p.link.egress_a.mtu = mtu;
    p.send(pdu(1, 10));
    ASSERT_TRUE(p.deliver());
    expected.push_back(mtu - 52 - 8);
    EXPECT_EQ(p.notices_a.emss, expected);
    EXPECT_EQ(p.a.usable_emss(), expected.back());
    EXPECT_EQ(p.a.stream()->emss() - 8, expected.back());
    EXPECT_EQ(p.a.send(pdu(1, expected.back() + 1)), SendResult::MessageSize);
  }
  EXPECT_EQ(p.counters_a.emss_notices, expected.size());
}

// TUF-5.1-05: by an ICMP message in the middle of it.
TEST(Aligned, EmssShrinksByIcmp_TUF_3_06_TUF_5_1_04_TUF_5_2_02) {
  FramedPair p;
  p.open();
  p.align();
  // Segments above the path's MTU vanish, and a router says so once.
  p.link.hook = [&](const testing::LinkFrame& f) {
    return testing::Fate{.drop = f.from_a && f.tcp.size() + 20 > 1000};
  };
  for (uint32_t i = 0; i < 4; ++i) p.send(pdu(i, kEmss - 8));
  p.link.run(milliseconds(1));
  ASSERT_EQ(p.segments_a.size(), 4u);
  Octets quoted(8);
  base::store_be16(&quoted[0], p.a.stream()->local().port);
  base::store_be16(&quoted[2], FramedPair::kPort);
  base::store_be32(&quoted[4], FramedPair::kIsn + 1);
  p.link.a.icmp_error({.kind = llp::IcmpError::Kind::PacketTooBig,
                       .mtu = 1000,
                       .quoted_length = 1500,
                       .source = testing::kAddressA,
                       .destination = testing::kAddressB,
                       .tcp = quoted},
                      p.link.now);
  EXPECT_EQ(p.notices_a.emss.back(), 1000u - 52 - 8);  // told at once
  EXPECT_EQ(p.a.send(pdu(9, 1000)), SendResult::MessageSize);
  ASSERT_TRUE(p.deliver());
  // Cut by TCP: nothing larger than the new EMSS, so nothing for IP to fragment.
  for (size_t i = 4; i < p.segments_a.size(); ++i) EXPECT_LE(p.segments_a[i].size(), 948u);
  EXPECT_EQ(p.link.a.counters().timeouts, 0u);
  p.send(pdu(10, 940));
  ASSERT_TRUE(p.deliver());
  EXPECT_TRUE(is_frame(p.segments_a.back(), kKeyA));
}

/// Where the sending operations of a begin: the boundaries that no segment may have inside.
std::vector<size_t> operations(const Octets& image) {
  std::vector<size_t> all;
  for (size_t at = 0; at < image.size();) {
    all.push_back(at);
    at += 8 + (image[at] * 256u + image[at + 1]);
  }
  return all;
}

// The path shrinks and grows, segments are lost and
// come late: no segment ever has octets of two operations, each operation that still fits is sent
// again whole and where it was, and after an exception the next one is aligned.
TEST(Aligned, BoundariesHold_TUF_5_1_02_TUF_5_1_03_TUF_5_2_02_TUF_5_3_02) {
  for (uint64_t seed = 1; seed <= 30; ++seed) {
    base::Prng random(seed);
    StreamConfig config;
    config.framing.packing = seed % 2 == 0;
    FramedPair p(config);
    std::vector<std::pair<size_t, Octets>> placed;
    p.open();
    const auto seen = p.link.seen;
    p.link.seen = [&](const testing::LinkFrame& f) {
      seen(f);
      const uint32_t n = f.payload();
      if (!f.from_a || n == 0) return;
      placed.emplace_back(f.sequence() - FramedPair::kIsn - 1,
                          Octets(f.tcp.end() - n, f.tcp.end()));
    };
    p.link.hook = [&](const testing::LinkFrame&) {
      if (random.chance(0.03)) {
        p.link.egress_a.mtu = static_cast<uint32_t>(random.between(300, 1500));
      }
      return testing::Fate{.drop = random.chance(0.05),
                           .extra = milliseconds(random.chance(0.1) ? 3 : 0)};
    };
    p.align();
    for (uint32_t i = 0; i < 300; ++i) {
      if (p.a.pdu_limit() < 2) continue;
      p.send(pdu(i, random.between(2, p.a.pdu_limit())));
      if (i % 10 == 0) p.link.run(milliseconds(1));
    }
    ASSERT_TRUE(p.deliver(seconds(600))) << seed;
    const std::vector<size_t> begins = operations(p.image);
    for (const auto& [at, octets] : placed) {
      const auto above = std::upper_bound(begins.begin(), begins.end(), at);
      const size_t end = above == begins.end() ? p.image.size() : *above;
      // What was cut when it did not fit may go whole once the path has grown.
      EXPECT_LE(at + octets.size(), end) << seed;
      const bool part = at != *(above - 1) || octets.size() != end - at;
      if (part) {
        EXPECT_FALSE(is_frame(octets, kKeyA));
      }
    }
    EXPECT_GT(p.counters_b.unaligned_segments_in, 0u);
    p.link.hook = nullptr;
    p.link.egress_a.mtu = 1500;
    p.send(pdu(0, 10));
    ASSERT_TRUE(p.deliver());
    const size_t before = p.segments_a.size();
    p.send(pdu(1, 500));
    ASSERT_TRUE(p.deliver());
    ASSERT_EQ(p.segments_a.size(), before + 1);
    EXPECT_TRUE(is_frame(p.segments_a.back(), kKeyA));
    EXPECT_EQ(p.b.error(), framing::PduError::None);
  }
}

// Nothing but loss: what is sent again is the very segment that was sent.
TEST(Aligned, RetransmissionsKeepTheirSegments_TUF_5_3_02) {
  FramedPair p;
  p.open();
  p.align();
  std::map<uint32_t, Octets> first;
  uint32_t again = 0;
  p.link.hook = [&](const testing::LinkFrame& f) {
    if (!f.from_a || f.payload() == 0) return testing::Fate{};
    const Octets octets(f.tcp.end() - f.payload(), f.tcp.end());
    const auto [it, fresh] = first.emplace(f.sequence(), octets);
    if (!fresh) {
      EXPECT_EQ(it->second, octets);
      ++again;
    }
    return testing::Fate{.drop = fresh && f.number % 3 == 0};
  };
  for (uint32_t i = 0; i < 60; ++i) p.send(pdu(i, 100 + i * 37 % 1300));
  ASSERT_TRUE(p.deliver());
  EXPECT_GT(again, 5u);
  for (const auto& [at, octets] : first) EXPECT_TRUE(is_frame(octets, kKeyA));
}

// A larger EMSS is reported first, and the probe goes only with a
// PDU above the old one; behind it EMSS is as before, until the probe has arrived. A probe that is
// lost is sent again in smaller segments.
TEST(Aligned, AProbeOfThePath_TUF_5_1_06_TUF_5_1_07_TUF_5_2_05) {
  for (const bool lost : {false, true}) {
    tcp::Config tcp;
    tcp.mtu_probe_from_base = true;
    StreamConfig config;
    config.framing.packing = false;
    FramedPair p(config, tcp);
    p.open();
    p.align();
    const uint32_t small = 1024 - 52 - 8;
    EXPECT_EQ(p.a.usable_emss(), small);
    for (uint32_t i = 0; i < 12; ++i) p.send(pdu(i, small));
    ASSERT_TRUE(p.deliver());
    // Offered, and nothing large was submitted: no probe.
    EXPECT_EQ(p.a.usable_emss(), kEmss - 8);
    EXPECT_EQ(p.notices_a.emss.back(), kEmss - 8);
    EXPECT_EQ(p.link.a.counters().mtu_probes, 0u);
    for (const Octets& s : p.segments_a) EXPECT_LE(s.size(), 1024u - 52);
    EXPECT_EQ(p.a.send(pdu(0, kEmss - 7)), SendResult::MessageSize);
    uint32_t probes = 0;
    p.link.hook = [&](const testing::LinkFrame& f) {
      const bool probe = f.from_a && f.payload() > 1024 - 52;
      if (probe) ++probes;
      return testing::Fate{.drop = probe && lost};
    };
    p.send(pdu(100, kEmss - 8));
    p.link.step();
    EXPECT_EQ(p.link.a.counters().mtu_probes, 1u);
    EXPECT_EQ(p.segments_a.back().size(), kEmss);
    EXPECT_TRUE(is_frame(p.segments_a.back(), kKeyA));
    EXPECT_EQ(p.a.usable_emss(), small);  // put back at once
    EXPECT_EQ(p.notices_a.emss.back(), small);
    EXPECT_EQ(p.a.send(pdu(0, small + 1)), SendResult::MessageSize);
    ASSERT_TRUE(p.deliver());
    EXPECT_EQ(p.link.a.counters().mtu_probes_confirmed, lost ? 0u : 1u);
    EXPECT_EQ(p.a.stream()->emss(), lost ? 1024u - 52 : kEmss);
    EXPECT_EQ(probes, 1u);
    if (!lost) {
      EXPECT_EQ(p.a.usable_emss(), kEmss - 8);
    }
  }
}

// Packing makes a framing PDU of the larger size by itself.
TEST(Aligned, APackedProbe_TUF_5_1_06) {
  tcp::Config tcp;
  tcp.mtu_probe_from_base = true;
  FramedPair p({}, tcp);
  p.open();
  p.align();
  for (uint32_t i = 0; i < 600; ++i) p.send(pdu(i, 90));
  ASSERT_TRUE(p.deliver());
  EXPECT_EQ(p.link.a.counters().mtu_probes_confirmed, 1u);
  EXPECT_EQ(p.a.stream()->emss(), kEmss);
  for (const Octets& s : p.segments_a) EXPECT_TRUE(is_frame(s, kKeyA));
}

// Without probing the EMSS stays where the path's trouble left it.
TEST(Aligned, ProbingCanBeOff_TUF_5_1_08) {
  tcp::Config tcp;
  tcp.mtu_probing = false;
  tcp.mtu_probe_from_base = true;
  FramedPair p({}, tcp);
  p.open();
  p.align();
  p.link.egress_a.mtu = 1024;
  for (uint32_t i = 0; i < 200; ++i) p.send(pdu(i, 900));
  ASSERT_TRUE(p.deliver());
  EXPECT_EQ(p.link.a.counters().mtu_probes, 0u);
  for (const Octets& s : p.segments_a) EXPECT_LE(s.size(), kEmss);
}

// An option: the first send after EMSS has grown says EMSGSIZE, once.
TEST(Aligned, EmsgsizeTellsOfGrowth_TUF_A_05) {
  for (const bool on : {false, true}) {
    StreamConfig config;
    config.framing.refuse_on_growth = on;
    FramedPair p(config);
    p.open();
    p.align();
    p.link.egress_a.mtu = 900;
    p.send(pdu(0, 100));
    ASSERT_TRUE(p.deliver());
    p.link.egress_a.mtu = 1500;
    p.send(pdu(1, 100));
    ASSERT_TRUE(p.deliver());
    EXPECT_EQ(p.a.send(pdu(2, 100)), on ? SendResult::MessageSize : SendResult::Ok);
    EXPECT_EQ(p.a.send(pdu(2, 100)), SendResult::Ok);
  }
}

// A peer that reads slowly has windows smaller than EMSS, and none at all:
// its probes, and pieces of PDUs, arrive, and the PDUs are whole.
TEST(Aligned, SmallAndClosedWindows_TUF_5_2_03_TUF_5_2_04) {
  StreamConfig config;
  config.ring_octets = kRingMin;
  tcp::Config tcp_b;
  for (const uint32_t window : {1000u, 700u, 300u, 100u, 9u, 8u, 7u, 1u}) {
    tcp_b.receive_window = window;
    FramedPair p(config, {}, tcp_b);
    p.open();
    p.align();
    for (uint32_t i = 0; i < 12; ++i) p.send(pdu(i, kEmss - 8 - i));
    ASSERT_TRUE(p.deliver(seconds(100000))) << window;
    for (const Octets& s : p.segments_a) EXPECT_FALSE(is_frame(s, kKeyA));
    EXPECT_GT(p.link.a.counters().resegmented_records, 0u);
  }
  // Closed: nobody reads for a while.
  FramedPair p(config);
  p.open();
  p.align();
  for (uint32_t i = 0; i < 80; ++i) p.send(pdu(i, kEmss - 8));
  p.link.run(seconds(30));
  for (uint32_t i = 80; i < 140; ++i) p.send(pdu(i, kEmss - 8));
  p.link.run(seconds(30));
  EXPECT_GT(p.link.a.counters().window_probes, 0u);
  ASSERT_TRUE(p.deliver());
}

// Cwnd counts octets: small framing PDUs are many segments and few octets.
TEST(Aligned, CongestionWindowInOctets_TUF_5_3_01) {
  for (const size_t size : {20u, 200u, 1440u}) {
    StreamConfig config;
    config.framing.packing = false;
    FramedPair p(config);
    p.open();
    p.align();
    const uint32_t cwnd = p.link.a.info(*p.a.stream(), p.link.now)->cwnd;
    for (uint32_t i = 0; i < 2000 && p.a.send(pdu(i, size)) == SendResult::Ok; ++i) {
    }
    p.a.serve();
    p.link.run(std::chrono::microseconds(400));  // no ACK has come yet
    uint32_t octets = 0;
    for (const Octets& s : p.segments_a) octets += static_cast<uint32_t>(s.size());
    EXPECT_LE(octets, cwnd);
    EXPECT_GT(octets + kEmss, cwnd);
    if (size == 20) {
      EXPECT_GT(p.segments_a.size(), 400u);
    }
  }
}

/// The PDUs that an octet stream holds: a framing header, then whole PDUs of the length it tells.
std::vector<Octets> pdus_of(const Octets& stream) {
  std::vector<Octets> all;
  const auto length_at = [&](size_t at) { return stream[at] * 256u + stream[at + 1]; };
  for (size_t at = 0; at + 8 <= stream.size();) {
    const size_t end = std::min(at + 8 + length_at(at), stream.size());
    for (at += 8; at + 2 <= end;) {
      const size_t past = std::min(at + 2 + length_at(at), end);
      all.emplace_back(stream.begin() + static_cast<long>(at),
                       stream.begin() + static_cast<long>(past));
      at = past;
    }
  }
  return all;
}

// A receiver that knows nothing of framing gets the very octets in order: what was
// submitted, behind its framing headers, packed and not, also where it had to be sent again.
TEST(Aligned, APlainReceiver_TUF_2_03) {
  for (const bool packing : {true, false}) {
    StreamConfig config;
    config.framing.packing = packing;
    FramedPair p(config);
    p.open();
    ASSERT_TRUE(p.a.set_send_mode(FramedSendMode::Align, kKeyA));
    base::Prng random(7);
    p.link.hook = [&](const testing::LinkFrame& frame) {
      return testing::Fate{.drop = frame.payload() != 0 && random.chance(0.2)};
    };
    for (uint32_t i = 0; i < 100; ++i) p.send(pdu(i, 5 + i * 31 % 1400));
    Octets all;
    const auto take = [&] {
      Octets out(5000);
      for (uint32_t n = 1; n != 0;) {
        n = p.b.read(out);
        all.insert(all.end(), out.begin(), out.begin() + n);
      }
      p.b.serve();
      return p.a.unacknowledged() == 0;
    };
    ASSERT_TRUE(p.link.run_until(take, seconds(60)));
    take();
    EXPECT_GT(p.counters_a.frames_rebuilt, 5u);
    EXPECT_EQ(pdus_of(all), p.sent);
    EXPECT_EQ(operations(all).size(), p.counters_a.frames_out);
    EXPECT_EQ(all.size(), p.image.size());
  }
}

}  // namespace
}  // namespace rnic::tuf

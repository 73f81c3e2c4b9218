// s.5.2: no part of a framing PDU looks like a whole one, whatever its payload; and what resegments
// the stream breaks nothing and is noticed.
#include "arrivals.hpp"
#include "framed_pair.hpp"
#include "support/mpa_fakes.hpp"

namespace rnic::tuf {
namespace {

/// A PDU whose octets at image offset `at` (framing header included) are a framing header for a
/// segment of `size` octets.
void plant(Octets& one, size_t at, size_t size) {
  if (at < 8 + 2) return;  // its own header, and the length in front
  Octets header(8);
  wire::store_tuf_header(header.data(), {static_cast<uint16_t>(size - 8), kKeyA});
  for (size_t i = 0; i < 8 && at - 8 + i < one.size(); ++i) one[at - 8 + i] = header[i];
}

struct Piece {
  size_t at;
  Octets octets;
};

/// The pieces of one PDU that a stream sends by itself at an EMSS below it.
std::vector<Piece> pieces_of(const Octets& one, uint32_t emss, Counters& counters) {
  test::FakeStream transport;
  StreamConfig config;
  config.framing.emergency = true;
  FramedStream s(config, counters);
  s.attach(transport);
  s.established(emss, {});
  EXPECT_TRUE(s.set_send_mode(FramedSendMode::Align, kKeyA));
  EXPECT_EQ(s.send(one), SendResult::Ok);
  std::vector<Piece> all;
  uint64_t offset = 0;
  for (;;) {
    Octets room(emss);
    llp::Frame frame(room.data(), emss);
    const llp::Pulled pulled = s.pull(emss, offset, frame, {});
    if (pulled.length == 0) return all;
    room.resize(pulled.length);
    // Sent again: the same octets.
    Octets again(pulled.length);
    llp::Frame twice(again.data(), pulled.length);
    EXPECT_TRUE(s.rebuild(pulled.tag, offset, pulled.length, twice));
    EXPECT_EQ(again, room);
    all.push_back({offset, room});
    offset += pulled.length;
  }
}

bool looks_whole(const Octets& segment) {
  return segment.size() >= 8 && wire::is_tuf_frame(segment, kKeyA);
}

// Whatever the EMSS, a header for the piece at hand is planted wherever a
// piece begins, the sender's evasion foreseen each time: no piece is one.
TEST(Lookalike, AdversaryForeseesEveryCut_TUF_5_2_07_TUF_5_2_08) {
  uint64_t avoided = 0;
  for (uint32_t emss = 1; emss < 512; emss += emss < 80 ? 1 : 13) {
    Octets one = pdu(1, 512);
    std::vector<Piece> pieces;
    Counters counters;
    for (size_t step = 1; step < 600; ++step) {
      Counters fresh;
      pieces = pieces_of(one, emss, fresh);
      counters = fresh;
      if (step >= pieces.size()) break;
      const size_t at = pieces[step].at;
      const size_t size = std::min<size_t>(emss, 520 - at);
      if (size < 8) continue;
      plant(one, at, size);
    }
    Octets image;
    for (const Piece& piece : pieces) {
      EXPECT_FALSE(looks_whole(piece.octets)) << emss << " at " << piece.at;
      image.insert(image.end(), piece.octets.begin(), piece.octets.end());
    }
    EXPECT_EQ(Octets(image.begin() + 8, image.end()), one) << emss;
    avoided += counters.lookalikes_avoided;
  }
  EXPECT_GT(avoided, 500u);  // without the rule each of them would have been taken for a whole one
}

// The key with every possible length at every offset, one at a time.
TEST(Lookalike, EveryLengthAtEveryOffset_TUF_5_2_08) {
  for (const uint32_t emss : {8u, 9u, 50u, 100u, 300u, 511u}) {
    uint64_t avoided = 0;
    for (size_t at = 10; at + 8 <= 520; ++at) {
      for (size_t size = 8; size <= emss; ++size) {
        // Lengths that cannot be hit from here are as harmless as any payload.
        if (size != emss && size != 520 - at && (size + at) % 17 != 0) continue;
        Octets one = pdu(3, 512);
        plant(one, at, size);
        Counters counters;
        for (const Piece& piece : pieces_of(one, emss, counters)) {
          ASSERT_FALSE(looks_whole(piece.octets)) << emss << " " << at << " " << size;
        }
        avoided += counters.lookalikes_avoided;
      }
    }
    EXPECT_GT(avoided, 0u) << emss;
  }
}

// Where TCP cuts, because the path or the window is smaller than the record:
// every cut of every EMSS in a range is foreseen.
TEST(Lookalike, TcpCutsAnother_TUF_5_2_07_TUF_5_2_08) {
  for (uint32_t mtu = 300; mtu < 1500; mtu += 37) {
    const uint32_t emss = mtu - 52;
    FramedPair p;
    p.open();
    p.align();
    bool shrunk = false;
    p.link.hook = [&](const testing::LinkFrame& f) {
      if (!f.from_a || f.payload() == 0) return testing::Fate{};
      const bool first = !shrunk;
      shrunk = true;
      if (first) p.link.egress_a.mtu = mtu;
      return testing::Fate{.drop = first};
    };
    Octets one = pdu(1, 1440);
    for (size_t at = emss; at < 1448; at += emss) plant(one, at, std::min<size_t>(emss, 1448 - at));
    p.send(one);
    ASSERT_TRUE(p.deliver());
    EXPECT_TRUE(is_frame(p.segments_a[0], kKeyA));
    for (size_t i = 1; i < p.segments_a.size(); ++i) {
      EXPECT_FALSE(looks_whole(p.segments_a[i])) << mtu << " " << i;
    }
    EXPECT_GT(p.counters_a.lookalikes_avoided, 0u) << mtu;
    EXPECT_EQ(p.counters_b.aligned_segments_in, 0u);
  }
  for (uint32_t window = 100; window < 1400; window += 91) {
    tcp::Config tcp_b;
    tcp_b.receive_window = window;
    FramedPair p({}, {}, tcp_b);
    p.open();
    p.align();
    Octets one = pdu(1, 1440);
    for (size_t at = window; at < 1448; at += window) {
      plant(one, at, std::min<size_t>(window, 1448 - at));
    }
    p.send(one);
    ASSERT_TRUE(p.deliver(seconds(1000)));
    for (const Octets& s : p.segments_a) EXPECT_FALSE(looks_whole(s)) << window;
    EXPECT_GT(p.counters_a.lookalikes_avoided, 0u) << window;
  }
}

// A segment above EMSS, for IP to fragment, is never sent: there is no such option.
TEST(Lookalike, NothingForIpToFragment_TUF_5_2_09) {
  FramedPair p;
  p.open();
  p.align();
  std::vector<std::pair<uint32_t, uint32_t>> sizes;
  const auto seen = p.link.seen;
  p.link.seen = [&](const testing::LinkFrame& f) {
    seen(f);
    if (f.from_a) sizes.emplace_back(f.tcp.size() + 20, p.link.egress_a.mtu);
  };
  for (const uint32_t mtu : {1500u, 1200u, 576u, 300u, 1500u}) {
    for (uint32_t i = 0; i < 30; ++i) p.send(pdu(i, 200));
    p.link.egress_a.mtu = mtu;
    ASSERT_TRUE(p.deliver());
  }
  for (const auto& [size, mtu] : sizes) EXPECT_LE(size, mtu);
}

/// The stream that an aligned sender makes of some PDUs.
struct AlignedStream {
  explicit AlignedStream(const std::vector<size_t>& sizes) {
    for (const size_t size : sizes) {
      begins.push_back(octets.size());
      pdus.push_back(pdu(static_cast<uint32_t>(pdus.size()), size));
      octets.resize(octets.size() + 8);
      wire::store_tuf_header(&octets[begins.back()], {static_cast<uint16_t>(size), kKeyA});
      octets.insert(octets.end(), pdus.back().begin(), pdus.back().end());
    }
  }
  std::vector<Octets> pdus;
  std::vector<size_t> begins;
  Octets octets;
};

struct Reader {
  explicit Reader(uint32_t limit = 4096, FramedReceiveMode mode = FramedReceiveMode::Align)
      : stream(with(limit), counters, &notices), in(stream) {
    RNIC_CHECK(stream.set_receive_mode(mode, kKeyA).has_value());
  }
  static StreamConfig with(uint32_t limit) {
    StreamConfig config;
    config.framing.middlebox_limit = limit;
    return config;
  }
  std::vector<Octets> all() {
    std::vector<Octets> got;
    Octets out(65536);
    for (Received r = stream.receive(out); r.kind == ReceiveKind::Pdu; r = stream.receive(out)) {
      got.emplace_back(out.begin(), out.begin() + r.length);
    }
    return got;
  }
  Counters counters;
  Notices notices;
  FramedStream stream;
  Arrivals in;
};

// Every way to cut a stream of three PDUs in three, in both orders.
TEST(Middlebox, EveryResegmentation_TUF_5_2_06_TUF_5_4_03) {
  const AlignedStream s({5, 2, 21});
  const base::ByteView all(s.octets);
  for (size_t i = 0; i <= all.size(); ++i) {
    for (size_t j = i; j <= all.size(); ++j) {
      for (const bool swapped : {false, true}) {
        Reader r;
        std::vector<Octets> got;
        const auto receive = [&](size_t from, size_t to) {
          r.in.receive(from, all.subspan(from, to - from));
          for (const Octets& pdu : r.all()) got.push_back(pdu);
        };
        if (!swapped) receive(0, i);
        receive(j, all.size());
        receive(i, j);
        if (swapped) receive(0, i);
        ASSERT_EQ(got, s.pdus) << i << " " << j;
        ASSERT_EQ(r.stream.error(), framing::PduError::None);
      }
    }
  }
}

// Split and coalesced for good: told once.
TEST(Middlebox, ALongRunIsNoticed_TUF_5_2_10) {
  for (const size_t cut : {100u, 700u, 1000u, 5000u}) {
    const AlignedStream s(std::vector<size_t>(3000, 900));
    Reader r;
    size_t segments = 0;
    size_t noticed = 0;
    for (size_t at = 0; at < s.octets.size(); at += cut) {
      const size_t n = std::min(cut, s.octets.size() - at);
      r.in.receive(at, base::ByteView(s.octets).subspan(at, n));
      ++segments;
      if (r.notices.middleboxes != 0 && noticed == 0) noticed = segments;
      r.all();
    }
    EXPECT_EQ(r.notices.middleboxes, 1) << cut;
    EXPECT_EQ(r.counters.middlebox_suspected, 1u);
    EXPECT_LE(noticed, 4096u);
    // Segments with the end of one and the begin of the next are the surer sign.
    if (cut >= 700) {
      EXPECT_LE(noticed, 400u) << cut;
    }
  }
  // Nothing of it on an aligned stream; and off when switched off.
  for (const bool off : {false, true}) {
    const AlignedStream s(std::vector<size_t>(3000, 900));
    Reader r(off ? 0 : 4096);
    for (size_t i = 0; i < s.begins.size(); ++i) {
      const size_t cut = off ? 454 : 908;
      for (size_t at = s.begins[i]; at < s.begins[i] + 908; at += cut) {
        r.in.receive(at, base::ByteView(s.octets).subspan(at, cut));
      }
      r.all();
    }
    EXPECT_EQ(r.notices.middleboxes, 0);
  }
}

// A window of framing PDUs comes again in pieces because EMSS shrank: no suspicion.
TEST(Middlebox, AnEmssChangeIsNone_TUF_5_2_11) {
  const AlignedStream s(std::vector<size_t>(1000, 1440));
  Reader r;
  for (size_t i = 0; i < 900; ++i) {
    const base::ByteView frame = base::ByteView(s.octets).subspan(s.begins[i], 1448);
    r.in.receive(s.begins[i], frame.first(500));
    r.in.receive(s.begins[i] + 500, frame.subspan(500, 500));
    r.in.receive(s.begins[i] + 1000, frame.subspan(1000));
    r.all();
  }
  EXPECT_EQ(r.notices.middleboxes, 0);
  r.in.receive(s.begins[900], base::ByteView(s.octets).subspan(s.begins[900], 1448));
  EXPECT_EQ(r.counters.aligned_segments_in, 1u);
  // The same pieces shifted, so that each joins two of them, are a suspicion at once.
  Reader shifted;
  for (size_t at = 0; at + 500 <= s.octets.size(); at += 500) {
    shifted.in.receive(at, base::ByteView(s.octets).subspan(at, 500));
    shifted.all();
  }
  EXPECT_EQ(shifted.notices.middleboxes, 1);
}

// A segment of which only a part is new is never an aligned one, whatever that part
// looks like.
TEST(Middlebox, APartOfASegmentIsNoFrame_TUF_5_4_01) {
  AlignedStream s({600});
  plant(s.pdus[0], 208, 400);
  std::copy(s.pdus[0].begin(), s.pdus[0].end(), s.octets.begin() + 8);
  const base::ByteView all(s.octets);
  EXPECT_TRUE(wire::is_tuf_frame(all.subspan(208), kKeyA));
  Reader r;
  r.in.receive(0, all.first(208));
  r.in.receive(0, all);  // delayed: what is new of it is [208, 608)
  EXPECT_EQ(r.counters.aligned_segments_in, 0u);
  EXPECT_EQ(r.all(), s.pdus);
}

// Hostile input: single bits of headers, and noise. A named error, a counter, and no octet more.
TEST(Hostile, EveryBitOfTheHeader_TUF_5_4_04) {
  const AlignedStream good({40, 50});
  for (size_t bit = 0; bit < 64; ++bit) {
    AlignedStream s({40, 50});
    s.octets[s.begins[1] + bit / 8] ^= static_cast<uint8_t>(0x80 >> bit % 8);
    Reader r;
    r.in.receive(0, base::ByteView(s.octets).first(48));
    r.in.receive(48, base::ByteView(s.octets).subspan(48));
    const Octets filler(70000, 0xff);
    r.in.receive(s.octets.size(), filler);
    const std::vector<Octets> got = r.all();
    // A length that is too large has the PDU in it all the same; what follows tells.
    const bool larger = bit < 16 && (50 & 0x8000 >> bit) == 0;
    ASSERT_EQ(got.size(), larger ? 2u : 1u) << bit;
    EXPECT_TRUE(std::equal(got.begin(), got.end(), good.pdus.begin()));
    EXPECT_EQ(r.stream.error(), bit < 16 ? framing::PduError::BadLength : framing::PduError::BadKey)
        << bit;
    EXPECT_EQ(r.counters.bad_key_errors, bit < 16 ? 0u : 1u);
    EXPECT_EQ(r.counters.bad_length_errors, bit < 16 ? 1u : 0u);
    EXPECT_EQ(r.counters.aligned_segments_in, 1u);  // the first one only
    Octets out(100);
    EXPECT_EQ(r.stream.receive(out).kind, ReceiveKind::Broken);
  }
}

TEST(Hostile, Noise) {
  for (uint64_t seed = 1; seed <= 3000; ++seed) {
    base::Prng random(seed);
    Reader r(4096, seed % 2 == 0 ? FramedReceiveMode::Align : FramedReceiveMode::Markers);
    AlignedStream s({random.between(2, 300), random.between(2, 300), random.between(2, 300)});
    for (uint64_t i = random.below(6); i-- > 0;) {
      s.octets[random.below(s.octets.size())] = static_cast<uint8_t>(random.next());
    }
    size_t got = 0;
    for (uint32_t i = 0; i < 20; ++i) {
      const size_t at = random.below(s.octets.size());
      r.in.receive(at,
                   base::ByteView(s.octets).subspan(at, random.between(1, s.octets.size() - at)));
      for (const Octets& one : r.all()) got += one.size();
    }
    EXPECT_LE(got, s.octets.size());
  }
}

}  // namespace
}  // namespace rnic::tuf

// What is small enough to be tried completely: markers against FPDU lengths and segment cuts, start
// frames cut everywhere, every bit of an FPDU, and the receive cases that the texts list.
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <numeric>

#include "crc/crc.hpp"
#include "framing/mulpdu.hpp"
#include "mpa/fpdu_locator.hpp"
#include "mpa/fpdu_writer.hpp"
#include "start_frames.hpp"
#include "support/long_form.hpp"

namespace rnic::mpa {
namespace {

using llp::FramingError;
using test::MpaEnd;
using test::numbered_ulpdu;
using test::Octets;
using test::SlowEncoder;

Config grid_config(bool markers, bool drop = true) {
  Config config;
  config.markers_receive = markers;
  config.silent_drop = drop;
  return config;
}

/// A responder in full operation that is given parts of a stream.
struct GridReceiver {
  explicit GridReceiver(const Config& config) : end(framing::Role::Responder, config) {
    end.establish();
    end.receive(0, request_frame(0x40, 1));
    end.session->accept({}, end.now);
    end.pull_all();
  }
  bool give(const Octets& stream, size_t from, size_t to) {
    return end.receive(kStart + from, base::ByteView(stream).subspan(from, to - from));
  }
  MpaEnd end;
};

/// FPDUs of which the second begins `shift` octets behind a marker; what they carry in `out`.
SlowEncoder shifted(uint32_t shift, size_t length, std::vector<Octets>& out) {
  SlowEncoder encoder(kStart, true);
  const auto add = [&](Octets ulpdu) {
    encoder.add(ulpdu);
    out.push_back(std::move(ulpdu));
  };
  if (shift != 0) add(Octets(shift == 8 ? 506 : shift - 10, 0x55));
  add(numbered_ulpdu(1, length));
  add(numbered_ulpdu(2, 30));
  return encoder;
}

// MPA-4.3-11 MPA-5.1-04 MPA-A.4-04 MPA-A.4-05 BUG-15: a marker at every place
// of the grid, every length modulo 4, and a segment boundary at every octet of the FPDU, the parts
// in order and swapped.
// UNH-MPA-2-05 UNH-MPA-2-09
TEST(Exhaustive, MarkerAgainstLengthAgainstCut_MPA_4_3_12_MPA_A_4_01) {
  uint64_t cases = 0;
  for (uint32_t shift = 0; shift < 512; shift += test::by_form(12, 4)) {
    if (shift == 4) continue;  // no FPDU ends right behind a marker
    for (size_t length = 37; length < 41; ++length) {
      std::vector<Octets> expected;
      const SlowEncoder encoder = shifted(shift, length, expected);
      const size_t begin = encoder.boundaries[expected.size() - 2] - kStart;
      const size_t end = encoder.boundaries[expected.size() - 1] - kStart;
      for (size_t cut = begin + 1; cut < end; ++cut) {
        for (const bool swapped : {false, true}) {
          GridReceiver rx(grid_config(true));
          rx.give(encoder.stream, 0, begin);
          if (swapped) rx.give(encoder.stream, cut, encoder.stream.size());
          rx.give(encoder.stream, begin, cut);
          if (!swapped) rx.give(encoder.stream, cut, encoder.stream.size());
          ASSERT_EQ(rx.end.user.delivered, expected) << shift << " " << length << " " << cut;
          ASSERT_EQ(rx.end.user.faults, 0);
          ASSERT_EQ(held_octets(*rx.end.own_store), 0u);
          ++cases;
        }
      }
    }
  }
  EXPECT_GT(cases, test::by_form(13'000u, 40'000u));
}

// MPA-4.1-02: the writer against the slow encoder, every place of the grid and
// every length of 0 to 600.
TEST(Exhaustive, WriterAtEveryPlace_MPA_3_01_MPA_4_3_12) {
  const MarkerGrid grid(true, kStart);
  const Octets filler = numbered_ulpdu(3, 700);
  for (uint32_t shift = 0; shift < 512; shift += 4) {
    if (shift == 4) continue;
    SlowEncoder head(kStart, true);
    if (shift != 0) head.add(Octets(shift == 8 ? 506 : shift - 10, 0x55));
    const size_t from = head.stream.size();
    for (size_t length = 0; length < 600; length += 1 + shift % 8) {
      SlowEncoder slow = head;
      const base::ByteView ulpdu = base::ByteView(filler).first(length);
      slow.add(ulpdu);
      Octets room(800);
      llp::Frame frame(room.data(), 800);
      FpduWriter writer(grid, kStart + from, true, 700, frame);
      writer.write(static_cast<uint32_t>(length), ulpdu, {});
      ASSERT_TRUE(writer.complete());
      ASSERT_TRUE(std::equal(slow.stream.begin() + static_cast<long>(from), slow.stream.end(),
                             room.begin(), room.begin() + frame.length()))
          << shift << " " << length;
    }
  }
}

// MPA-7.1.5-03: every start frame of every revision, cut in two at every octet, in
// order and the wrong way round.
// UNH-MPA-1-08
TEST(Exhaustive, StartFramesCutAtEveryOctet_MPA_7_1_2_17) {
  struct Frame {
    uint8_t flags, revision;
    Octets data;
  };
  const Octets text = numbered_ulpdu(5, 90);
  Octets enhanced{0x80, 4, 0xc0, 4};
  enhanced.insert(enhanced.end(), text.begin(), text.end());
  for (const Frame& f :
       {Frame{0x40, 1, {}}, Frame{0x40, 1, text}, Frame{0x50, 2, enhanced}, Frame{0xc0, 0, text},
        Frame{0xc0, 0, numbered_ulpdu(2, 700)}, Frame{0x60, 1, text}}) {
    for (const framing::Role role : {framing::Role::Initiator, framing::Role::Responder}) {
      const bool asks = role == framing::Role::Initiator;
      const Octets frame = asks ? reply_frame(f.flags, f.revision, f.data)
                                : request_frame(f.flags, f.revision, f.data);
      for (size_t cut = 1; cut < frame.size(); ++cut) {
        for (const bool swapped : {false, true}) {
          Config config;
          config.permissive = true;
          const framing::StartOptions start_options{.exchange_reads = f.revision == 2,
                                                    .peer_to_peer = f.revision == 2,
                                                    .ird = 4,
                                                    .ord = 4};
          MpaEnd end(role, config, {}, 512u << 10, nullptr, start_options);
          end.establish();
          end.pull_all();
          const base::ByteView whole(frame);
          if (swapped) end.receive(cut, whole.subspan(cut));
          end.receive(0, whole.first(cut));
          if (!swapped) end.receive(cut, whole.subspan(cut));
          const Octets& data = asks ? end.events.start_data : end.events.requests.at(0);
          const size_t prefix = f.revision == 2 ? 4 : 0;
          ASSERT_TRUE(std::equal(data.begin(), data.end(),
                                 f.data.begin() + static_cast<long>(prefix), f.data.end()))
              << cut;
          ASSERT_EQ(
              end.events.starts.size() + end.events.requests.size() + end.events.failures.size(),
              1u);
          ASSERT_EQ(held_octets(*end.own_store), 0u);
        }
      }
    }
  }
}

// MPA-8-03 MPA-8-09: each bit of an FPDU changed. Nothing of it goes up, and
// what was before it does; healed it goes up, too. Without silent drop it is error 2.
// UNH-MPA-2-03
TEST(Exhaustive, EveryBitOfAnFpdu_MPA_8_02_MPA_4_4_09) {
  for (const bool markers : {false, true}) {
    for (const bool drop : {true, false}) {
      SlowEncoder encoder(kStart, markers);
      for (uint32_t i = 0; i < 3; ++i) encoder.add(numbered_ulpdu(i, 260));
      const size_t begin = encoder.boundaries[1] - kStart, end = encoder.boundaries[2] - kStart;
      for (size_t bit = begin * 8; bit < end * 8; ++bit) {
        Octets stream = encoder.stream;
        stream[bit / 8] ^= static_cast<uint8_t>(1u << bit % 8);
        GridReceiver rx(grid_config(markers, drop));
        rx.give(stream, 0, begin);
        const bool accepted = rx.give(stream, begin, stream.size());
        for (const auto& placed : rx.end.user.placed) {
          ASSERT_TRUE(placed.octets == numbered_ulpdu(0, 260)) << bit;
        }
        ASSERT_EQ(rx.end.user.delivered.size(), 1u);
        // A length that points past what has come is not known to be wrong yet.
        const size_t header = begin + (markers && begin % 512 == 0 ? 4 : 0);
        const bool in_length = bit / 8 - header < 2;
        if (drop && !in_length) {
          ASSERT_FALSE(accepted) << bit;
          ASSERT_TRUE(rx.give(encoder.stream, begin, stream.size()));
          ASSERT_EQ(rx.end.user.delivered.size(), 3u);
        } else if (!drop && !in_length) {
          ASSERT_EQ(rx.end.user.errors, std::vector{FramingError::Crc}) << bit;
        }
      }
    }
  }
}

/// The five receive cases of draft-00 s.7.4.1 (RFC 5044 s.A.4): which segments a stream of six
/// FPDUs comes in, by FPDU number and octets behind its start.
struct Segmentation {
  const char* name;
  std::vector<std::pair<size_t, size_t>> cuts;  // (FPDU, octets)
};

// MPA00-7.4-01 MPA-6-02 MPA-A.4-02 MPA-A.4-03 MPA-A.4-04 MPA-A.4-05
// MPAA-7.1-01: each case with markers and without, the segments in every order.
// UNH-MPA-2-10
TEST(Exhaustive, ReceiveCasesInEveryOrder_MPA00_7_4_1_01_MPA_A_4_06) {
  const std::vector<Segmentation> kCases{
      {"one aligned FPDU each", {{1, 0}, {2, 0}, {3, 0}, {4, 0}, {5, 0}}},
      {"several aligned FPDUs", {{2, 0}, {4, 0}}},
      {"incomplete at the end", {{1, 300}, {2, 0}, {3, 400}, {4, 0}}},
      {"unaligned start", {{1, 600}, {2, 600}, {4, 500}}},
      {"mixed", {{0, 100}, {2, 250}, {2, 600}, {5, 10}}},
  };
  for (const bool markers : {false, true}) {
    for (const Segmentation& c : kCases) {
      SlowEncoder encoder(kStart, markers);
      std::vector<Octets> expected;
      for (uint32_t i = 0; i < 6; ++i) expected.push_back(numbered_ulpdu(i, 700 + i));
      for (const Octets& ulpdu : expected) encoder.add(ulpdu);
      std::vector<size_t> at{0};
      for (const auto& [fpdu, octets] : c.cuts) {
        at.push_back(encoder.boundaries[fpdu] - kStart + octets);
      }
      at.push_back(encoder.stream.size());
      std::vector<size_t> order(at.size() - 1);
      std::iota(order.begin(), order.end(), 0);
      do {
        GridReceiver rx(grid_config(markers));
        size_t complete = 0;  // of the segments from the first on
        std::vector<bool> have(order.size());
        for (const size_t k : order) {
          ASSERT_TRUE(rx.give(encoder.stream, at[k], at[k + 1])) << c.name;
          have[k] = true;
          while (complete < have.size() && have[complete]) ++complete;
          // Delivered is exactly what is complete in order.
          const size_t whole = static_cast<size_t>(
              std::count_if(encoder.boundaries.begin() + 1, encoder.boundaries.end(),
                            [&](uint64_t b) { return b - kStart <= at[complete]; }) +
              (at[complete] == encoder.stream.size() ? 1 : 0));
          ASSERT_EQ(rx.end.user.delivered.size(), whole) << c.name;
          if (!markers) {
            for (const auto& placed : rx.end.user.placed) ASSERT_TRUE(placed.in_order);
          }
        }
        ASSERT_EQ(rx.end.user.delivered, expected) << c.name;
        ASSERT_EQ(rx.end.user.placed.size(), expected.size());
        ASSERT_EQ(held_octets(*rx.end.own_store), 0u);
      } while (std::next_permutation(order.begin(), order.end()));
    }
  }
}

// MPAA-6-06: with markers aligned FPDUs are placed at once, out
// of order too, and nothing is copied on the way.
TEST(Exhaustive, AlignedFpdusAreNeverHeld_MPA_A_4_02_MPA_A_4_03_MPAA_7_1_02) {
  for (uint32_t skipped = 0; skipped < 4; ++skipped) {
    SlowEncoder encoder(kStart, true);
    for (uint32_t i = 0; i < 16; ++i) encoder.add(numbered_ulpdu(i, 1000));
    GridReceiver rx(grid_config(true));
    const auto boundary = [&](size_t i) {
      return i < 16 ? encoder.boundaries[i] - kStart : encoder.stream.size();
    };
    for (uint32_t k = 0; k < 4; ++k) {
      if (k != skipped) rx.give(encoder.stream, boundary(4 * k), boundary(4 * k + 4));
    }
    EXPECT_EQ(rx.end.user.placed.size(), 12u);
    EXPECT_EQ(rx.end.user.delivered.size(), 4u * skipped);
    rx.give(encoder.stream, boundary(4 * skipped), boundary(4 * skipped + 4));
    EXPECT_EQ(rx.end.user.delivered.size(), 16u);
    EXPECT_EQ(rx.end.counters.held_octets, 0u);
  }
}

// Siw's way of sending: the header alone, the payload, the CRC alone; then several FPDUs in
// one segment. In order, and with one of the pieces lost. The aligned ones that follow are not
// held.
TEST(Exhaustive, HeaderPayloadAndCrcApart_BUG_15) {
  for (const bool markers : {false, true}) {
    for (size_t lost = 0; lost < 8; ++lost) {
      SlowEncoder encoder(kStart, markers);
      std::vector<Octets> expected;
      for (uint32_t i = 0; i < 8; ++i) expected.push_back(numbered_ulpdu(i, 1000));
      for (const Octets& ulpdu : expected) encoder.add(ulpdu);
      const auto boundary = [&](size_t i) { return encoder.boundaries[i] - kStart; };
      std::vector<size_t> at;
      for (size_t i = 0; i < 2; ++i) {
        at.insert(at.end(), {boundary(i), boundary(i) + 16, boundary(i + 1) - 4});
      }
      at.insert(at.end(), {boundary(2), boundary(4), boundary(5), boundary(6)});
      GridReceiver rx(grid_config(markers));
      for (size_t k = 0; k + 1 < at.size(); ++k) {
        if (k != lost) rx.give(encoder.stream, at[k], at[k + 1]);
      }
      if (lost + 1 < at.size()) rx.give(encoder.stream, at[lost], at[lost + 1]);
      const uint64_t held = rx.end.counters.held_octets;
      rx.give(encoder.stream, boundary(6), boundary(7));
      rx.give(encoder.stream, boundary(7), encoder.stream.size());
      EXPECT_EQ(rx.end.user.delivered, expected);
      EXPECT_EQ(rx.end.counters.held_octets, held) << "aligned again";
      EXPECT_EQ(rx.end.user.faults, 0);
    }
  }
}

// Altered octets behind and over what was committed, as a transport hands them up, change nothing.
TEST(Exhaustive, AlteredRetransmissionsChangeNothing) {
  for (const bool markers : {false, true}) {
    SlowEncoder encoder(kStart, markers), other(kStart, markers);
    std::vector<Octets> expected;
    for (uint32_t i = 0; i < 4; ++i) {
      expected.push_back(numbered_ulpdu(i, 500));
      encoder.add(expected.back());
      other.add(numbered_ulpdu(i + 100, 500));
    }
    GridReceiver rx(grid_config(markers));
    const size_t one = encoder.boundaries[1] - kStart;
    rx.give(encoder.stream, one, encoder.stream.size());
    rx.give(other.stream, one, other.stream.size());
    rx.give(encoder.stream, 0, one);
    rx.give(other.stream, 0, other.stream.size());
    EXPECT_EQ(rx.end.user.delivered, expected);
    EXPECT_EQ(rx.end.user.placed.size(), 4u);
  }
}

TEST(Exhaustive, CrcUnitVectors_MPA_4_4_V3) {
  const auto wire = [](const Octets& octets) {
    Octets out(4);
    base::store_le32(out.data(),
                     crc::finish(crc::update(crc::kInit, octets.data(), octets.size())));
    return out;
  };
  Octets up(32), down(32);
  std::iota(up.begin(), up.end(), uint8_t{0});
  std::reverse_copy(up.begin(), up.end(), down.begin());
  EXPECT_EQ(wire(Octets(32, 0)), (Octets{0xaa, 0x36, 0x91, 0x8a}));
  EXPECT_EQ(wire(Octets(32, 0xff)), (Octets{0x43, 0xab, 0xa8, 0x62}));
  EXPECT_EQ(wire(up), (Octets{0x4e, 0x79, 0xdd, 0x46}));
  EXPECT_EQ(wire(down), (Octets{0x5c, 0xdb, 0x3f, 0x11}));
  const std::string digits = "123456789";
  EXPECT_EQ(wire({digits.begin(), digits.end()}), (Octets{0x83, 0x92, 0x06, 0xe3}));
}

Octets written(const MarkerGrid& grid, uint64_t offset, const Octets& ulpdu) {
  Octets room(200);
  llp::Frame frame(room.data(), 200);
  FpduWriter writer(grid, offset, true, 200, frame);
  writer.write(static_cast<uint32_t>(ulpdu.size()), ulpdu, {});
  EXPECT_TRUE(writer.complete());
  room.resize(frame.length());
  return room;
}

/// What stands before the 24 octets of data, and the CRC behind them.
Octets dump(const std::array<uint8_t, 24>& head, const std::array<uint8_t, 4>& crc) {
  Octets all(24 + 24 + 4);
  std::copy(head.begin(), head.end(), all.begin());
  std::copy(crc.begin(), crc.end(), all.begin() + 48);
  return all;
}

// MPA-4.4-V4 MPA00-6.1-01: all octets of the dumps.
TEST(Exhaustive, HexDumpsOfTheTexts_MPA_4_4_V1_MPA_4_4_V2_MPA00_7_2_V1_MPA00_7_2_V2) {
  const MarkerGrid grid(true, 0);
  EXPECT_EQ(written(grid, 0, figure_ulpdu(0x41, 0x43, 1)),
            dump({0, 0, 0, 0, 0, 0x2a, 0x41, 0x43, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1, 0, 0, 0, 0},
                 {0x52, 0x23, 0x99, 0x83}));
  EXPECT_EQ(written(grid, 0, figure_ulpdu(0x40, 0x03, 1)),
            dump({0, 0, 0, 0, 0, 0x2a, 0x40, 0x03, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1, 0, 0, 0, 0},
                 {0x4c, 0x86, 0xb3, 0x84}));
  EXPECT_EQ(
      written(grid, 0x1ec, figure_ulpdu(0x41, 0x43, 2)),
      dump({0, 0x2a, 0x41, 0x43, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 2, 0, 0, 0, 0, 0, 0, 0, 0x14},
           {0x84, 0x92, 0x58, 0x98}));
  EXPECT_EQ(
      written(grid, 0x1ec, figure_ulpdu(0x40, 0x03, 2)),
      dump({0, 0x2a, 0x40, 0x03, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 2, 0, 0, 0, 0, 0, 0, 0, 0x14},
           {0xa1, 0x9c, 0xd1, 0x03}));
  Octets send(18, 0), write(14, 0);
  send[0] = 0x41, send[1] = 0x43, send[13] = 1;
  write[0] = 0xc1, write[1] = 0x40;
  EXPECT_EQ(written({}, 20, send),
            (Octets{0, 0x12, 0x41, 0x43, 0, 0, 0, 0, 0,    0,    0,    0,
                    0, 0,    0,    1,    0, 0, 0, 0, 0x58, 0x7b, 0xe8, 0xc4}));
  EXPECT_EQ(written({}, 20, write), (Octets{0, 0x0e, 0xc1, 0x40, 0, 0, 0,    0,    0,    0,
                                            0, 0,    0,    0,    0, 0, 0xa3, 0x05, 0x72, 0xab}));
}

// A ULPDU above the MULPDU is never built.
TEST(Exhaustive, UlpdusStayBelowTheMulpdu_MPA_3_04_MPA_3_05) {
  for (const bool markers : {false, true}) {
    for (uint32_t emss = 100; emss <= 70'000; emss += 997) {
      Config peer;
      peer.markers_receive = markers;
      test::MpaPair pair({}, peer);
      pair.start(emss);
      pair.a.user.to_send = {numbered_ulpdu(1, pair.a.session->mulpdu() + 1)};
      EXPECT_FALSE(pair.a.pull(emss));
      EXPECT_LE(pair.a.user.last_max, framing::kMulpduMax);
      EXPECT_LE(pair.a.user.last_max, pair.a.session->mulpdu());
    }
  }
}

// A plain TCP peer, whatever it sends, at any place of the start-up.
TEST(Exhaustive, PlainPeersNeverReachDdp_MPAA_8_01_MPAA_8_03) {
  for (int octet = 0; octet < 256; ++octet) {
    for (const framing::Role role : {framing::Role::Initiator, framing::Role::Responder}) {
      MpaEnd end(role, {});
      end.establish();
      end.pull_all();
      end.receive(0, Octets(200, static_cast<uint8_t>(octet)));
      if (octet != 'M') {
        ASSERT_EQ(end.events.failures, std::vector{framing::StartFailure::BadKey});
      } else {
        ASSERT_EQ(end.events.failures.size(), 1u);
      }
      ASSERT_EQ(end.stream.closes, 1);
      ASSERT_TRUE(end.user.placed.empty() && end.user.delivered.empty());
    }
  }
  // A false Hello: the peer went to MPA and we did not, or the other way: the time-out ends it.
  MpaEnd waiting(framing::Role::Responder, {});
  waiting.establish();
  waiting.session->on_timer(waiting.session->next_deadline());
  EXPECT_EQ(waiting.events.failures, std::vector{framing::StartFailure::TimedOut});
}

}  // namespace
}  // namespace rnic::mpa

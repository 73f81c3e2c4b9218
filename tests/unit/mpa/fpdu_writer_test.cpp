#include "mpa/fpdu_writer.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <random>

#include "base/endian.hpp"
#include "start_frames.hpp"
#include "support/mpa_fakes.hpp"

namespace rnic::mpa {
namespace {

using test::MpaPair;
using test::numbered_ulpdu;
using test::Octets;
using test::SlowEncoder;

Octets build(const MarkerGrid& grid, uint64_t offset, bool crc, const Octets& ulpdu) {
  Octets room(70000);
  llp::Frame frame(room.data(), static_cast<uint32_t>(room.size()));
  FpduWriter writer(grid, offset, crc, 65535, frame);
  writer.write(static_cast<uint32_t>(ulpdu.size()), ulpdu, {});
  EXPECT_TRUE(writer.complete());
  room.resize(frame.length());
  return room;
}

Octets tail(const Octets& octets, size_t n) {
  return {octets.end() - static_cast<long>(n), octets.end()};
}

// MPA-7.1.2-12 MPA-4.4-08-a: the first FPDU of a stream.
// UNH-MPA-2-07
TEST(FpduWriter, FirstFpduVectors_MPA_4_4_V1_MPA00_7_2_V1) {
  const MarkerGrid grid(true, 0);
  const Octets rfc = build(grid, 0, true, figure_ulpdu(0x41, 0x43, 1));
  ASSERT_EQ(rfc.size(), 0x34u);
  EXPECT_EQ(Octets(rfc.begin(), rfc.begin() + 8), (Octets{0, 0, 0, 0, 0, 0x2a, 0x41, 0x43}));
  EXPECT_EQ(tail(rfc, 4), (Octets{0x52, 0x23, 0x99, 0x83}));
  const Octets draft = build(grid, 0, true, figure_ulpdu(0x40, 0x03, 1));
  EXPECT_EQ(tail(draft, 4), (Octets{0x4c, 0x86, 0xb3, 0x84}));
}

// MPA-4.4-07: an FPDU at 0x1ec with a marker at 0x200.
TEST(FpduWriter, SecondFpduVectors_MPA_4_4_V2_MPA00_7_2_V2) {
  const MarkerGrid grid(true, 0);
  const Octets rfc = build(grid, 0x1ec, true, figure_ulpdu(0x41, 0x43, 2));
  ASSERT_EQ(rfc.size(), 0x220u - 0x1ec);
  EXPECT_EQ(Octets(rfc.begin() + 0x14, rfc.begin() + 0x18), (Octets{0, 0, 0, 0x14}));
  EXPECT_EQ(tail(rfc, 4), (Octets{0x84, 0x92, 0x58, 0x98}));
  const Octets draft = build(grid, 0x1ec, true, figure_ulpdu(0x40, 0x03, 2));
  EXPECT_EQ(tail(draft, 4), (Octets{0xa1, 0x9c, 0xd1, 0x03}));
}

// UNH-MPA-2-07
TEST(FpduWriter, ShortFpdusWithoutMarkers_MPA_4_4_V4) {
  const MarkerGrid grid;
  Octets send(18, 0);
  send[0] = 0x41, send[1] = 0x43, send[13] = 1;
  EXPECT_EQ(tail(build(grid, 20, true, send), 4), (Octets{0x58, 0x7b, 0xe8, 0xc4}));
  Octets write(14, 0);
  write[0] = 0xc1, write[1] = 0x40;
  EXPECT_EQ(tail(build(grid, 20, true, write), 4), (Octets{0xa3, 0x05, 0x72, 0xab}));
}

// MPA-4.2-03 MPA-4.1-03: figure 4.
TEST(FpduWriter, Figure4_MPA_4_3_10) {
  const MarkerGrid grid(true, 0);
  const Octets fpdu = build(grid, 512 - 12, true, numbered_ulpdu(1, 16));
  ASSERT_EQ(fpdu.size(), 28u);
  EXPECT_EQ(Octets(fpdu.begin() + 12, fpdu.begin() + 16), (Octets{0, 0, 0, 0x0c}));
  EXPECT_EQ(Octets(fpdu.begin() + 22, fpdu.begin() + 24), (Octets{0, 0}));
}

// MPA-4.2-01 MPA-4.2-02 MPA-4.3-01 MPA-4.3-02 MPA-4.3-07 MPA-4.3-08 MPA-4.3-09
// MPA-4.1-01 MPA-4.1-02 MPA-4.1-05 MPA-4.4-07: each place of the grid, each pad, CRC
// on and off, against the slow encoder.
TEST(FpduWriter, EveryMarkerPositionEqualsTheSlowEncoder_MPA_4_3_12) {
  for (const bool crc : {true, false}) {
    for (uint32_t shift = 0; shift < 512; shift += 4) {
      for (const uint32_t length : {0u, 1u, 2u, 3u, 100u, 505u, 506u, 507u, 508u, 1441u, 1442u}) {
        SlowEncoder slow(20, true, crc);
        // A first FPDU that ends `shift` octets behind a marker; none ends right behind one.
        if (shift == 4) continue;
        if (shift != 0) slow.add(Octets(shift == 8 ? 506 : shift - 10, 0x55));
        ASSERT_EQ(slow.stream.size() % 512, shift);
        const size_t from = slow.stream.size();
        const Octets ulpdu = numbered_ulpdu(shift, length);
        slow.add(ulpdu);
        const MarkerGrid grid(true, 20);
        const Octets fast = build(grid, 20 + from, crc, ulpdu);
        ASSERT_EQ(fast, Octets(slow.stream.begin() + static_cast<long>(from), slow.stream.end()))
            << shift << " " << length;
      }
    }
  }
}

/// Builds an FPDU at stream offset 44 from a header of 14 octets and pieces of `piece` octets.
Octets build_of_pieces(const MarkerGrid& grid, bool crc, Octets ulpdu, size_t piece) {
  Octets room(2000);
  llp::Frame frame(room.data(), 2000);
  FpduWriter writer(grid, 44, crc, 1500, frame);
  std::vector<base::ByteSpan> pieces;
  for (size_t at = 14; at < ulpdu.size(); at += piece) {
    pieces.emplace_back(ulpdu.data() + at, std::min(piece, ulpdu.size() - at));
  }
  writer.write(static_cast<uint32_t>(ulpdu.size()), base::ByteView(ulpdu).first(14), pieces);
  EXPECT_TRUE(writer.complete());
  room.resize(frame.length());
  return room;
}

// Pieces of any size give the same octets, whether a piece is copied and summed in one pass or not.
TEST(FpduWriter, PiecesOfAnySizeGiveTheSameFpdu_MPA_3_01) {
  const Octets ulpdu = numbered_ulpdu(9, 1401);
  for (const bool markers : {true, false}) {
    const MarkerGrid grid(markers, 0);
    for (const bool crc : {true, false}) {
      SlowEncoder slow(44, false, crc);
      slow.add(ulpdu);
      const Octets whole = markers ? build(grid, 44, crc, ulpdu) : slow.stream;
      for (size_t piece = 1; piece < 1401; piece += 13) {
        ASSERT_EQ(build_of_pieces(grid, crc, ulpdu, piece), whole) << piece << markers << crc;
      }
    }
  }
}

// MPA-4.3-02 MPA-4.3-08: pieces that are copied at once, and what comes behind them, in front of
// each place of the grid.
TEST(FpduWriter, LongPiecesBetweenMarkersEqualTheSlowEncoder_MPA_4_3_04) {
  for (uint32_t shift = 12; shift < 512; shift += 4) {
    SlowEncoder slow(20, true, true);
    slow.add(Octets(shift - 10, 0x55));
    ASSERT_EQ(slow.stream.size() % 512, shift);
    const size_t from = slow.stream.size();
    Octets ulpdu = numbered_ulpdu(shift, 14 + 2048 + 2500 + 700);
    slow.add(ulpdu);
    const MarkerGrid grid(true, 20);
    Octets room(6000);
    llp::Frame frame(room.data(), 6000);
    FpduWriter writer(grid, 20 + from, true, 5800, frame);
    const base::ByteSpan all(ulpdu);
    const std::array<base::ByteSpan, 3> pieces{all.subspan(14, 2048), all.subspan(2062, 2500),
                                               all.subspan(4562)};
    writer.write(static_cast<uint32_t>(ulpdu.size()), all.first(14), pieces);
    room.resize(frame.length());
    ASSERT_EQ(room, Octets(slow.stream.begin() + static_cast<long>(from), slow.stream.end()))
        << shift;
  }
}

// Without markers an FPDU is that of the slow encoder, at every length and pad.
// MPA-4.1-01 MPA-4.1-02 MPA-4.1-03: without markers.
TEST(FpduWriter, EveryLengthEqualsTheSlowEncoder_MPA_3_01_MPA_4_4_07) {
  const MarkerGrid grid;
  for (size_t length = 14; length < 600; ++length) {
    const Octets ulpdu = numbered_ulpdu(5, length);
    for (const bool crc : {true, false}) {
      SlowEncoder slow(44, false, crc);
      slow.add(ulpdu);
      ASSERT_EQ(build_of_pieces(grid, crc, ulpdu, 600), slow.stream) << length;
    }
  }
}

/// A segment that a writer puts FPDUs into, one behind the other.
struct Segment {
  Segment(const MarkerGrid& grid, bool crc, uint32_t room, uint32_t spare, uint32_t places)
      : row(headers, 0, spare, places),
        frame(octets.data(), room, &row),
        writer(grid, 44, crc, ulpdu_room(grid, 44, room), frame, ulpdu_room(grid, 44, room)) {}

  Octets octets = Octets(2000);
  std::array<uint8_t*, 1> headers{octets.data()};
  llp::FrameRow row;
  llp::Frame frame;
  FpduWriter writer;
};

/// Does what append() says that it does.
bool append_in_steps(FpduWriter& writer, uint32_t& room, const llp::PulledUlpdu& before,
                     const Octets& header, base::ByteSpan payload) {
  const auto length = static_cast<uint32_t>(header.size() + payload.size());
  if (writer.complete()) {
    const llp::UlpduRoom behind = writer.next(before);
    if (behind.max == 0) return false;
    room = behind.max;
  }
  if (length > room) return false;
  writer.write(length, header, {&payload, 1});
  return true;
}

// Any ULPDUs into any segment, with markers and without, until one does not fit.
TEST(FpduWriter, AppendedFpdusAreThoseThatFollowEachOtherInSteps_MPA_4_5_07) {
  std::mt19937 random(3);
  const auto draw = [&](uint32_t below) { return static_cast<uint32_t>(random() % below); };
  Octets payload = numbered_ulpdu(3, 400);
  for (int round = 0; round < 3000; ++round) {
    const MarkerGrid grid(draw(3) == 0, 20);
    const bool crc = draw(4) != 0;
    const uint32_t room = 40 + draw(1400);
    const uint32_t spare = draw(10) == 0 ? UINT32_MAX : 24;
    const uint32_t places = 1 + draw(20);
    Segment one(grid, crc, room, spare, places);
    Segment other(grid, crc, room, spare, places);
    uint32_t left = ulpdu_room(grid, 44, room);
    llp::PulledUlpdu before;
    for (bool fits = true; fits;) {
      const Octets header = numbered_ulpdu(draw(9), draw(2) == 0 ? 14 : 18);
      const base::ByteSpan piece{payload.data(), draw(8) == 0 ? draw(400) : draw(80)};
      fits = one.writer.append(before, header, piece);
      ASSERT_EQ(append_in_steps(other.writer, left, before, header, piece), fits);
      before = {.length = static_cast<uint32_t>(header.size() + piece.size()),
                .last = true,
                .tag = {random(), random()}};
      ASSERT_TRUE(!fits || one.writer.size() == other.writer.size());
    }
    ASSERT_EQ(one.octets, other.octets);
    ASSERT_EQ(one.writer.fpdus(), other.writer.fpdus());
    ASSERT_EQ(one.writer.markers(), other.writer.markers());
    // In steps the last record has been passed on before it turns out that nothing follows it.
    ASSERT_LE(one.row.passed().size(), other.row.passed().size());
    for (size_t i = 0; i < one.row.passed().size(); ++i) {
      ASSERT_EQ(one.row.passed()[i].length, other.row.passed()[i].length);
      ASSERT_EQ(one.row.passed()[i].tag, other.row.passed()[i].tag);
      ASSERT_TRUE(one.row.passed()[i].push && one.row.passed()[i].atomic);
    }
  }
}

// A series is what its ULPDUs are one by one, headers that count in 4 and in 8 octets, until it
// ends or one does not fit.
TEST(FpduWriter, ASeriesIsItsUlpdusOneByOne_MPA_4_1_02) {
  std::mt19937 random(5);
  const auto draw = [&](uint32_t below) { return static_cast<uint32_t>(random() % below); };
  Octets payload = numbered_ulpdu(3, 1000);
  for (int round = 0; round < 1000; ++round) {
    const MarkerGrid grid(draw(3) == 0, 20);
    const uint32_t places = 1 + draw(20);
    Segment one(grid, true, 1400, 24, places);
    Segment other(grid, true, 1400, 24, places);
    const bool wide = draw(2) == 0;
    Octets header = numbered_ulpdu(draw(9), wide ? 14 : 18);
    std::fill(header.end() - 4, header.end(), uint8_t{0xff});  // the count wraps, or carries
    const uint32_t each = 1 + draw(60);
    const uint32_t most = draw(12);
    llp::RecordTag tag{random(), random()};
    llp::UlpduSeries series(header, wide ? 8 : 4, {payload.data(), each}, tag, 3);
    llp::PulledUlpdu before{.last = true};
    const uint32_t count = one.writer.append_series(before, series, most);
    llp::PulledUlpdu written;
    uint32_t n = 0;
    for (; n < most; ++n) {
      if (!other.writer.append(written, header, {payload.data() + size_t{n} * each, each})) break;
      written = {.length = static_cast<uint32_t>(header.size()) + each, .tag = tag};
      uint8_t* const at = header.data() + header.size() - (wide ? 8 : 4);
      wide ? base::store_be64(at, base::load_be64(at) + each)
           : base::store_be32(at, base::load_be32(at) + each);
      tag.b += 3;
    }
    ASSERT_EQ(count, n);
    ASSERT_EQ(one.octets, other.octets);
    if (count == 0) continue;
    ASSERT_EQ(before.length, written.length);
    ASSERT_EQ(before.tag, written.tag);
    ASSERT_FALSE(before.last);
  }
}

// What does not fit leaves the segment as it was, and another ULPDU may still go there.
TEST(FpduWriter, WhatCannotBeAppendedChangesNothing) {
  const MarkerGrid grid;
  Segment segment(grid, true, 200, 24, 8);
  Octets payload(300);
  const Octets header(14);
  EXPECT_FALSE(segment.writer.append({}, header, base::ByteSpan(payload)));
  EXPECT_FALSE(segment.writer.complete());
  EXPECT_TRUE(segment.writer.append({}, header, base::ByteSpan(payload).first(60)));
  const llp::PulledUlpdu first{.length = 74, .last = true, .tag = {7, 8}};
  EXPECT_FALSE(segment.writer.append(first, header, base::ByteSpan(payload).first(200)));
  EXPECT_EQ(segment.writer.size(), 80u);
  EXPECT_TRUE(segment.row.passed().empty());
  EXPECT_TRUE(segment.writer.append(first, header, base::ByteSpan(payload).first(60)));
  EXPECT_EQ(segment.row.passed().size(), 1u);
  EXPECT_EQ(segment.writer.fpdus(), 2u);
}

Config with_markers() {
  Config config;
  config.markers_receive = true;
  return config;
}

// EMSS changes are reported once each; pull offers MULPDU.
// DDP-3-01 MPA-A.1-02
TEST(SessionTx, MulpduFollowsEmss_MPA_4_5_06_MPA_3_02) {
  MpaPair pair({}, with_markers());
  pair.start(1460);
  EXPECT_EQ(pair.a.session->mulpdu(), 1442u);
  EXPECT_EQ(pair.a.user.mulpdus.back(), 1442u);
  pair.a.session->emss_changed(1448);
  pair.a.session->emss_changed(1448);
  EXPECT_EQ(pair.a.user.mulpdus, (std::vector<uint32_t>{1442, 1430}));
  pair.a.emss = 1448;
  EXPECT_FALSE(pair.a.pull(1448));
  EXPECT_EQ(pair.a.user.last_max, 1430u);
  EXPECT_FALSE(pair.a.user.last_whole_only);
}

// MPA-4.5-04: a partly filled segment takes only what fits.
TEST(SessionTx, PackingOffersWhatFits_MPA_4_5_07_MPA_5_1_03) {
  MpaPair pair({}, with_markers());
  pair.start(1460);
  pair.a.user.to_send = {numbered_ulpdu(1, 100), numbered_ulpdu(2, 60), numbered_ulpdu(3, 60)};
  const auto first = pair.a.pull(1460);
  ASSERT_TRUE(first);
  EXPECT_EQ(first->octets.size(), 112u);  // marker, length, 100, pad, CRC
  EXPECT_TRUE(pair.a.pull(72));           // 2 + 60 + 2 + 4 = 68
  EXPECT_TRUE(pair.a.user.last_whole_only);
  EXPECT_FALSE(pair.a.pull(67));
  EXPECT_EQ(pair.a.user.last_max, 58u);
  EXPECT_FALSE(pair.a.pull(16));
  EXPECT_TRUE(pair.a.pull(68));
}

// With an EMSS below 128 the report stays at 128 and no record is longer than the
// segment.
TEST(SessionTx, TinyEmssNeverOverrunsTheSegment_MPA_4_5_05) {
  MpaPair pair({}, with_markers());
  pair.start(100);
  EXPECT_EQ(pair.a.session->mulpdu(), 128u);
  EXPECT_FALSE(pair.a.pull(100));
  EXPECT_EQ(pair.a.user.last_max, 90u);
  pair.a.user.to_send = {numbered_ulpdu(1, 90)};
  const auto record = pair.a.pull(100);
  ASSERT_TRUE(record);
  EXPECT_EQ(record->octets.size(), 100u);
}

// A retransmission is octet for octet what was sent; after release nothing is left to rebuild.
TEST(SessionTx, RebuildGivesIdenticalOctets_MPA_4_3_01) {
  for (const bool markers : {false, true}) {
    Config peer;
    peer.markers_receive = markers;
    MpaPair pair({}, peer);
    pair.start(1460);
    for (uint32_t i = 0; i < 40; ++i) {
      pair.a.user.to_send.push_back(numbered_ulpdu(i, 20 + i * 36));
    }
    pair.a.pull_all();
    for (const auto& record : pair.a.records) {
      Octets again(record.octets.size());
      llp::Frame frame(again.data(), static_cast<uint32_t>(again.size()));
      ASSERT_TRUE(pair.a.session->rebuild(record.pulled.tag, record.offset,
                                          static_cast<uint32_t>(again.size()), frame));
      ASSERT_EQ(again, record.octets);
    }
    EXPECT_EQ(pair.a.counters.fpdus_out, 40u);
    EXPECT_EQ(pair.a.counters.fpdus_rebuilt, 40u);
    for (const auto& record : pair.a.records) {
      pair.a.session->released(record.pulled.tag, record.offset + record.octets.size());
    }
    EXPECT_TRUE(pair.a.user.sent.empty());
    const auto& last = pair.a.records.back();
    Octets again(last.octets.size());
    llp::Frame frame(again.data(), static_cast<uint32_t>(again.size()));
    EXPECT_FALSE(pair.a.session->rebuild(last.pulled.tag, last.offset,
                                         static_cast<uint32_t>(again.size()), frame));
  }
}

// RFC 5044 s.4.5, s.5.1: TCP is told of each FPDU, long or short, to keep it whole in a segment; a
// start frame is no FPDU and may be cut anywhere.
TEST(SessionTx, FpdusAreToBeKeptWhole_MPA_5_1_03) {
  MpaPair pair({}, with_markers());
  pair.start(1460);
  ASSERT_EQ(pair.a.records.size(), 1u);
  EXPECT_FALSE(pair.a.records[0].pulled.atomic);
  pair.a.user.to_send = {numbered_ulpdu(1, 1442), numbered_ulpdu(2, 60)};
  pair.a.pull_all();
  ASSERT_EQ(pair.a.records.size(), 3u);
  EXPECT_TRUE(pair.a.records[1].pulled.atomic);
  EXPECT_TRUE(pair.a.records[2].pulled.atomic);
}

}  // namespace
}  // namespace rnic::mpa

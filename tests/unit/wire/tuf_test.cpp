#include "wire/tuf.hpp"

#include "exact.hpp"

namespace rnic::wire {
namespace {

constexpr TufKey kKey = 0x0102'0304'0506;

// draft-ietf-tsvwg-tcp-ulp-frame-00 s.5: 16 bits of length, 48 of key.
TEST(TufWire, AHeaderAndAMarkerAtTheirPlaces) {
  const Octets header = written(kTufHeaderSize, [](uint8_t* p) {
    store_tuf_header(p, {0xabcd, kKey});
  });
  EXPECT_EQ(header, (Octets{0xab, 0xcd, 1, 2, 3, 4, 5, 6}));
  const TufHeader back = load_tuf_header(Exact(header).view().data());
  EXPECT_EQ(back.length, 0xabcd);
  EXPECT_EQ(back.key, kKey);
  EXPECT_EQ(written(kTufMarkerSize, [](uint8_t* p) { store_tuf_marker(p, 0x1234); }),
            (Octets{0x12, 0x34, 0x12, 0x34}));
}

TEST(TufWire, AWideKeyStaysInItsField) {
  const Octets header = written(kTufHeaderSize, [](uint8_t* p) {
    store_tuf_header(p, {1, ~TufKey{0}});
  });
  EXPECT_EQ(header, (Octets{0, 1, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff}));
}

// s.5.2, s.5.4: a frame is as long as its header says, neither more nor less, and has the key.
TEST(TufWire, WhatLooksLikeAFrame) {
  Octets segment(20, 0x77);
  store_tuf_header(segment.data(), {12, kKey});
  const auto framed = [](base::ByteView in) { return is_tuf_frame(in, kKey); };
  expect_all_needed(segment, framed);
  segment.push_back(0);
  EXPECT_FALSE(framed(segment));
  segment.pop_back();
  for (int bit = 0; bit < 64; ++bit) {
    Octets other = segment;
    other[static_cast<size_t>(bit / 8)] ^= static_cast<uint8_t>(1 << bit % 8);
    EXPECT_FALSE(framed(other)) << bit;
  }
}

TufStart everything() {
  TufStart s;
  s.reject = s.has_reads = true;
  s.receive_modes = 1;
  s.send_modes = 3;
  s.chosen_send = 2;
  s.chosen_receive = 1;
  s.marker_interval = 0x0abc;
  s.max_pdu = 0x1234;
  s.key = kKey;
  s.private_data = 0x0200;
  s.ird = 0x3ffe;
  s.ord = 0x0102;
  return s;
}

const Octets kEverything{'T', 'U', 'F',  ' ',  'R',  'e',  'p',  ' ',  1, 0xe0, 1,
                         3,   2,   1,    0x0a, 0xbc, 0x12, 0x34, 1,    2, 3,    4,
                         5,   6,   0x02, 0x00, 0x3f, 0xfe, 0x01, 0x02, 0, 0};

TEST(TufStartWire, EveryFieldAtItsPlace) {
  EXPECT_EQ(
      written(kTufStartSize, [](uint8_t* p) { write_tuf_start(p, kTufReplyMagic, everything()); }),
      kEverything);
  const auto back = parse_tuf_start(Exact(kEverything).view());
  ASSERT_TRUE(back);
  EXPECT_EQ(back->version, kTufVersion);
  EXPECT_TRUE(back->reject && back->has_reads && back->packing);
  EXPECT_EQ(back->receive_modes, kTufModeAlign);
  EXPECT_EQ(back->send_modes, kTufModeAlign | kTufModeMarkers);
  EXPECT_EQ(back->chosen_send, kTufModeMarkers);
  EXPECT_EQ(back->chosen_receive, kTufModeAlign);
  EXPECT_EQ(back->marker_interval, 0x0abc);
  EXPECT_EQ(back->max_pdu, 0x1234);
  EXPECT_EQ(back->key, kKey);
  EXPECT_EQ(back->private_data, 0x0200);
  EXPECT_EQ(back->ird, 0x3ffe);
  EXPECT_EQ(back->ord, 0x0102);
}

TEST(TufStartWire, EveryOctetIsNeeded) { expect_all_needed(kEverything, parse_tuf_start); }

// Reserved bits are not looked at; and where depths are not told theirs are reserved, too.
TEST(TufStartWire, WhatIsNotSaidIsNotRead) {
  Octets octets = kEverything;
  octets[kTufFlagsAt] |= 0x1f;
  octets[kTufIrdAt] |= 0xc0;
  octets[kTufOrdAt] |= 0xc0;
  octets[30] = octets[31] = 0xff;
  const auto same = parse_tuf_start(octets);
  ASSERT_TRUE(same);
  EXPECT_EQ(written(kTufStartSize, [&](uint8_t* p) { write_tuf_start(p, kTufReplyMagic, *same); }),
            kEverything);
  octets[kTufFlagsAt] = 0;
  const auto bare = parse_tuf_start(octets);
  ASSERT_TRUE(bare);
  EXPECT_FALSE(bare->reject || bare->packing || bare->has_reads);
  EXPECT_EQ(bare->ird, 0);
  EXPECT_EQ(bare->ord, 0);
  TufStart silent = everything();
  silent.has_reads = false;
  const Octets quiet =
      written(kTufStartSize, [&](uint8_t* p) { write_tuf_start(p, kTufRequestMagic, silent); });
  EXPECT_EQ(Octets(quiet.begin() + 26, quiet.end()), Octets(6, 0));
}

}  // namespace
}  // namespace rnic::wire

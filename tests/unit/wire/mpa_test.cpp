#include "wire/mpa.hpp"

#include "exact.hpp"

namespace rnic::wire {
namespace {

// Network order; A, B, 14 bits of IRD, C, D, 14 bits of ORD. As siw's captures have
// it.
TEST(EnhancedData, Layout_CM6581_9_01) {
  const auto octets = [](const MpaEnhancedData& data) {
    Octets out(4);
    write_mpa_enhanced(out.data(), data);
    return out;
  };
  EXPECT_EQ(octets({false, 0, 16, 32}), (Octets{0x00, 0x10, 0x00, 0x20}));
  EXPECT_EQ(octets({true, kMpaRtrWrite | kMpaRtrRead, 4, 4}), (Octets{0x80, 0x04, 0xc0, 0x04}));
  EXPECT_EQ(octets({true, kMpaRtrSend, 0x3fff, 0x3fff}), (Octets{0xff, 0xff, 0x3f, 0xff}));
  EXPECT_EQ(octets({true, kMpaRtrRead, 0x2abc, 0x1234}), (Octets{0xaa, 0xbc, 0x52, 0x34}));
  expect_all_needed(Octets{1, 2, 3, 4}, parse_mpa_enhanced);
  for (uint32_t a = 0; a < 2; ++a) {
    for (uint8_t rtr = 0; rtr < 8; ++rtr) {
      for (uint32_t bit = 0; bit < 14; ++bit) {
        const MpaEnhancedData data{a != 0, a != 0 ? rtr : uint8_t{0},
                                   static_cast<uint16_t>(1u << bit),
                                   static_cast<uint16_t>(0x2000u >> bit)};
        ASSERT_EQ(*parse_mpa_enhanced(octets(data)), data);
      }
    }
  }
}

// With A = 0 the other flags are zero when sent and ignored when received.
TEST(EnhancedData, WithoutAFlagsAreNothing_CM6581_9_2_06) {
  Octets out(4);
  write_mpa_enhanced(out.data(), {false, kMpaRtrSend | kMpaRtrWrite | kMpaRtrRead, 5, 6});
  EXPECT_EQ(out, (Octets{0, 5, 0, 6}));
  const auto data = parse_mpa_enhanced(Octets{0x40, 5, 0xc0, 6});
  EXPECT_EQ(*data, (MpaEnhancedData{false, 0, 5, 6}));
}

Octets start(const char* key, std::initializer_list<uint8_t> rest) {
  Octets octets(key, key + kMpaKeySize);
  octets.insert(octets.end(), rest);
  return octets;
}

// RFC 5044 s.7.1.1, both ways.
TEST(MpaStart, EveryFieldAtItsPlace) {
  const Octets reply = start("MPA ID Rep Frame", {0xe0, 1, 0x02, 0x00});
  const MpaStartHeader rejected{.markers = true, .crc = true, .reject = true, .pd_length = 512};
  EXPECT_EQ(written(kMpaStartHeaderSize,
                    [&](uint8_t* p) { write_mpa_start_header(p, kMpaReplyKey, rejected); }),
            reply);
  const auto back = parse_mpa_start_header(Exact(reply).view());
  ASSERT_TRUE(back);
  EXPECT_TRUE(back->markers && back->crc && back->reject);
  EXPECT_FALSE(back->enhanced);
  EXPECT_EQ(back->revision, 1);
  EXPECT_EQ(back->pd_length, 512);
  EXPECT_EQ(written(kMpaStartHeaderSize,
                    [](uint8_t* p) { write_mpa_start_header(p, kMpaRequestKey, {}); }),
            start("MPA ID Req Frame", {0, 1, 0, 0}));
  expect_all_needed(reply, parse_mpa_start_header);
}

// What a bit of the flags means is the revision's: R is reserved in 0, S in 0 and 1.
TEST(MpaStart, EachRevisionHasItsFlags) {
  for (uint8_t revision = 0; revision < 4; ++revision) {
    for (int bit = 0; bit < 8; ++bit) {
      const auto flags = static_cast<uint8_t>(1 << bit);
      const auto header =
          parse_mpa_start_header(start("MPA ID Req Frame", {flags, revision, 0, 0}));
      ASSERT_TRUE(header);
      EXPECT_EQ(header->revision, revision);
      EXPECT_EQ(header->markers, bit == 7);
      EXPECT_EQ(header->crc, bit == 6);
      EXPECT_EQ(header->reject, bit == 5 && revision >= 1);
      EXPECT_EQ(header->enhanced, bit == 4 && revision >= 2);
    }
  }
}

// RFC 5044 s.4.1: header, ULPDU and pad fill words of four octets.
TEST(MpaFpdu, SizesAreWhole) {
  for (uint32_t length = 0; length <= 70; ++length) {
    EXPECT_LT(mpa_pad(length), 4u);
    EXPECT_EQ((kMpaLengthSize + length + mpa_pad(length)) % 4, 0u) << length;
    EXPECT_EQ(mpa_fpdu_size(length), 6 + length + mpa_pad(length));
  }
  EXPECT_EQ(mpa_fpdu_size(0), 8u);
  EXPECT_EQ(mpa_fpdu_size(2), 8u);
  EXPECT_EQ(mpa_fpdu_size(kMpaUlpduMax), 65544u);
}

// RFC 5044 s.4.2, s.4.3: reserved octets sent as zero and not looked at, the two low bits as zero.
TEST(MpaMarker, PointsBackInWords) {
  const Octets octets = written(kMpaMarkerSize, [](uint8_t* p) { store_mpa_marker(p, 0x1237); });
  EXPECT_EQ(octets, (Octets{0, 0, 0x12, 0x34}));
  EXPECT_EQ(load_mpa_marker(Exact(octets).view().data()), 0x1234u);
  EXPECT_EQ(load_mpa_marker(Octets{0xff, 0xff, 0x12, 0x37}.data()), 0x1234u);
  EXPECT_EQ(written(kMpaMarkerSize, [](uint8_t* p) { store_mpa_marker(p, 0x1fffc); }),
            (Octets{0, 0, 0xff, 0xfc}));
}

}  // namespace
}  // namespace rnic::wire

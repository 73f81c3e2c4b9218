#include "ddp/segmenter.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <numeric>
#include <vector>

#include "support/framing_pair.hpp"

namespace rnic::ddp {
namespace {

std::vector<std::vector<uint8_t>> cut_all(const OutboundMessage& message,
                                          std::vector<uint8_t>& payload, uint32_t mulpdu) {
  std::vector<std::vector<uint8_t>> segments;
  uint32_t offset = 0;
  for (;;) {
    const Cut segment = cut(message, offset, mulpdu, false);
    EXPECT_TRUE(segment.possible);
    Pieces pieces;
    pieces.add(payload.data() + segment.offset, segment.length);
    test::CollectingWriter writer;
    write(message, segment, pieces.view(), writer);
    segments.push_back(writer.take());
    offset += segment.length;
    if (segment.last || segments.size() > 100) return segments;
  }
}

std::vector<uint8_t> counting(size_t n) {
  std::vector<uint8_t> v(n);
  std::iota(v.begin(), v.end(), 0);
  return v;
}

// DDP-4.3-02 DDP-4.3-05 DDP-4.1-03
TEST(Segmenter, UntaggedVector_DDP_5_2_03) {
  auto payload = counting(2048);
  const auto segments =
      cut_all({.rsvd_ulp = 0x43, .rsvd_ulp_tail = 0x01020304, .qn = 0, .msn = 9, .length = 2048},
              payload, 1500);
  ASSERT_EQ(segments.size(), 2u);
  const auto first = wire::parse_ddp_untagged(segments[0]);
  const auto second = wire::parse_ddp_untagged(segments[1]);
  const wire::DdpUntaggedHeader expected{
      .rsvd_ulp = 0x43, .rsvd_ulp_tail = 0x01020304, .qn = 0, .msn = 9, .mo = 0};
  EXPECT_EQ(first, expected);
  EXPECT_EQ(segments[0].size(), 18u + 1482);
  wire::DdpUntaggedHeader tail = expected;
  tail.mo = 1482;
  tail.last = true;
  EXPECT_EQ(second, tail);
  EXPECT_EQ(segments[1].size(), 18u + 566);
  EXPECT_TRUE(std::equal(payload.begin() + 1482, payload.end(), segments[1].begin() + 18));
}

// DDP-4.2-02
TEST(Segmenter, TaggedVector_DDP_5_2_04) {
  auto payload = counting(2048);
  const auto segments =
      cut_all({.tagged = true, .rsvd_ulp = 0x40, .stag = 0xabcd, .to = 16384, .length = 2048},
              payload, 1500);
  ASSERT_EQ(segments.size(), 2u);
  const wire::DdpTaggedHeader first{.rsvd_ulp = 0x40, .stag = 0xabcd, .to = 16384};
  const wire::DdpTaggedHeader second{.last = true, .rsvd_ulp = 0x40, .stag = 0xabcd, .to = 17870};
  EXPECT_EQ(wire::parse_ddp_tagged(segments[0]), first);
  EXPECT_EQ(segments[0].size(), 14u + 1486);
  EXPECT_EQ(wire::parse_ddp_tagged(segments[1]), second);
  EXPECT_EQ(segments[1].size(), 14u + 562);
}

// DDP-5.2-01 DDP-4.4-01: every length around the limits, both models.
// UNH-DDP-11
TEST(Segmenter, EveryLengthIsCutWhole_DDP_5_2_06) {
  auto payload = counting(700);
  for (const bool tagged : {false, true}) {
    for (uint32_t length = 0; length <= 700; ++length) {
      const OutboundMessage message{.tagged = tagged, .length = length};
      const auto segments = cut_all(message, payload, 128);
      const uint32_t room = 128 - message.header_size();
      EXPECT_EQ(segments.size(), length == 0 ? 1u : (length + room - 1) / room);
      uint32_t sum = 0;
      for (size_t i = 0; i < segments.size(); ++i) {
        EXPECT_LE(segments[i].size(), 128u);
        EXPECT_EQ((segments[i][0] & wire::kDdpLastBit) != 0, i + 1 == segments.size());
        sum += static_cast<uint32_t>(segments[i].size()) - message.header_size();
      }
      EXPECT_EQ(sum, length);
    }
  }
}

TEST(Segmenter, PackingTakesOnlyWhatEndsTheMessage) {
  const OutboundMessage message{.tagged = true, .length = 100};
  EXPECT_FALSE(cut(message, 0, 113, true).possible);
  EXPECT_TRUE(cut(message, 0, 114, true).possible);
  EXPECT_TRUE(cut(message, 60, 54, true).possible);
  EXPECT_FALSE(cut(message, 60, 53, true).possible);
  EXPECT_FALSE(cut(message, 0, 14, false).possible);  // a header alone carries nothing on
  EXPECT_TRUE(cut({.tagged = true}, 0, 14, true).possible);
  EXPECT_FALSE(cut({.tagged = true}, 0, 13, false).possible);
}

// The longest message there is, in segments that do not divide it.
TEST(Segmenter, TheLongestMessageIsCutToItsLastOctet_VERBS_21) {
  constexpr uint32_t kMulpdu = 65'521;
  for (const bool tagged : {false, true}) {
    const OutboundMessage message{.tagged = tagged, .length = UINT32_MAX};
    const uint64_t room = kMulpdu - message.header_size();
    uint64_t done = 0;
    uint64_t segments = 0;
    for (bool last = false; !last; ++segments) {
      const Cut segment = cut(message, static_cast<uint32_t>(done), kMulpdu, false);
      ASSERT_TRUE(segment.possible);
      ASSERT_EQ(segment.offset, done);
      done += segment.length;
      last = segment.last;
      ASSERT_EQ(segment.length, last ? UINT32_MAX % room : room);
    }
    EXPECT_EQ(done, UINT32_MAX);
    EXPECT_EQ(segments, (UINT32_MAX + room - 1) / room);
  }
}

}  // namespace
}  // namespace rnic::ddp

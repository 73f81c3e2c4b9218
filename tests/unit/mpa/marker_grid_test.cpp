#include "mpa/marker_grid.hpp"

#include <gtest/gtest.h>

#include <vector>

#include "wire/mpa.hpp"

namespace rnic::mpa {
namespace {

// MPA-4.3-02
TEST(MarkerGrid, StartAtElevenGivesMarkersAt11_523_1035_MPA_4_3_04) {
  const MarkerGrid grid(true, 11);
  std::vector<uint64_t> found;
  for (uint64_t at = 11; at < 1100; ++at) {
    if (grid.at(at)) found.push_back(at);
  }
  EXPECT_EQ(found, (std::vector<uint64_t>{11, 523, 1035}));
  EXPECT_EQ(grid.next(12), 523u);
  EXPECT_EQ(grid.next(523), 523u);
  EXPECT_EQ(grid.count(11, 12), 1u);
  EXPECT_EQ(grid.count(12, 523), 0u);
  EXPECT_EQ(grid.count(11, 1036), 3u);
}

// Offsets are 64 bits wide, so a wrap of 2^32 is no special place.
TEST(MarkerGrid, NothingHappensWhereSequenceNumbersWrap) {
  const uint64_t start = (1ull << 32) - 300;
  const MarkerGrid grid(true, start);
  EXPECT_EQ(grid.next(start + 1), start + 512);
  EXPECT_TRUE(grid.at(start + (1ull << 32)));
}

// A slow count: octet after octet.
framing::PduSpan slow_span(const MarkerGrid& grid, uint64_t begin, uint32_t length) {
  framing::PduSpan span{begin, 0, begin, length};
  for (uint32_t done = 0; done < wire::mpa_fpdu_size(length); done += 4) {
    if (grid.at(span.end)) span.end += 4;
    if (done == 0) span.header = span.end;
    span.end += 4;
  }
  return span;
}

TEST(FpduSpan, EveryMarkerPositionAndManyLengths_MPA_4_3_12) {
  const MarkerGrid grid(true, 532);
  for (uint64_t shift = 0; shift < 512; shift += 4) {
    for (uint32_t length = 0; length < 1600; ++length) {
      const framing::PduSpan fast = fpdu_span(grid, 532 + shift, length);
      const framing::PduSpan slow = slow_span(grid, 532 + shift, length);
      ASSERT_EQ(fast.header, slow.header) << shift << " " << length;
      ASSERT_EQ(fast.end, slow.end) << shift << " " << length;
    }
    const framing::PduSpan longest = fpdu_span(grid, 532 + shift, 65535);
    ASSERT_EQ(longest.end, slow_span(grid, 532 + shift, 65535).end);
    ASSERT_LE(longest.size(), 66'112u);
  }
}

TEST(FpduSpan, RoomIsTheLongestThatFits_MPA_4_5_07) {
  for (const bool markers : {false, true}) {
    const MarkerGrid grid(markers, 20);
    for (uint64_t shift = 0; shift < 512; shift += 4) {
      for (uint32_t room = 0; room < 1500; ++room) {
        const uint32_t length = ulpdu_room(grid, 20 + shift, room);
        if (length == 0) continue;
        ASSERT_LE(fpdu_span(grid, 20 + shift, length).size(), room);
        ASSERT_GT(fpdu_span(grid, 20 + shift, length + 1).size(), room);
      }
    }
  }
}

// MPA-4.5-05 MPA-3-03
TEST(Mulpdu, TableOfEmss_MPA_4_5_01_MPA_4_5_02) {
  EXPECT_EQ(mulpdu_of(1460, true), 1442u);
  EXPECT_EQ(mulpdu_of(1448, true), 1430u);
  EXPECT_EQ(mulpdu_of(536, true), 522u);
  EXPECT_EQ(mulpdu_of(512, true), 502u);
  EXPECT_EQ(mulpdu_of(513, true), 498u);
  EXPECT_EQ(mulpdu_of(8960, true), 8882u);
  EXPECT_EQ(mulpdu_of(1460, false), 1454u);
  EXPECT_EQ(mulpdu_of(1448, false), 1442u);
  EXPECT_EQ(mulpdu_of(536, false), 530u);
  EXPECT_EQ(mulpdu_of(8960, false), 8954u);
}

// MPA-3-03
TEST(Mulpdu, FitsWhereverTheGridFallsAndStaysInItsLimits_MPA_4_5_03_MPA_4_5_05) {
  for (const bool markers : {false, true}) {
    for (uint32_t emss = 0; emss < 70000; emss += emss < 2000 ? 1 : 997) {
      const uint32_t mulpdu = mulpdu_of(emss, markers);
      ASSERT_GE(mulpdu, 128u);
      ASSERT_LE(mulpdu, 64768u);
      if (emss < 140) continue;
      const MarkerGrid grid(markers, 0);
      for (uint64_t shift = 0; shift < 512; shift += 4) {
        ASSERT_LE(fpdu_span(grid, shift, mulpdu).size(), emss) << emss;
      }
    }
  }
}

}  // namespace
}  // namespace rnic::mpa

#include "wire/ddp.hpp"

#include "exact.hpp"

namespace rnic::wire {
namespace {

// DDP-4.1-01, DDP-4.1-06, DDP-4.2-01, DDP-4.3-01
// UNH-DDP-02
TEST(DdpHeaders, RoundTripAndTruncationAtEveryLength) {
  uint8_t octets[kDdpUntaggedSize];
  for (int bits = 0; bits < 8; ++bits) {
    const bool last = (bits & 1) != 0;
    const auto version = static_cast<uint8_t>(bits >> 1);
    const DdpTaggedHeader tagged{last, version, 0x42, 0x11223344, 0x5566778899aabbcc};
    write_ddp(octets, tagged);
    EXPECT_EQ(octets[0], 0x80 | (last ? 0x40 : 0) | version);
    const uint8_t figure3[] = {0x42, 0x11, 0x22, 0x33, 0x44, 0x55, 0x66,
                               0x77, 0x88, 0x99, 0xaa, 0xbb, 0xcc};
    EXPECT_TRUE(std::equal(std::begin(figure3), std::end(figure3), octets + 1));
    octets[0] |= 0x3c;  // reserved bits are not checked
    EXPECT_EQ(parse_ddp_tagged({octets, 14}), tagged);
    EXPECT_FALSE(parse_ddp_untagged({octets, 18}));
    expect_all_needed({octets, 14}, parse_ddp_tagged);
    const DdpUntaggedHeader untagged{last, version, 0x43, 1, 2, 0xffffffff, 0x01020304};
    write_ddp(octets, untagged);
    EXPECT_EQ(octets[0], (last ? 0x40 : 0) | version);
    const uint8_t figure4[] = {0x43, 0, 0, 0, 1, 0, 0, 0, 2, 0xff, 0xff, 0xff, 0xff, 1, 2, 3, 4};
    EXPECT_TRUE(std::equal(std::begin(figure4), std::end(figure4), octets + 1));
    octets[0] |= 0x3c;
    EXPECT_EQ(parse_ddp_untagged({octets, 18}), untagged);
    EXPECT_FALSE(parse_ddp_tagged({octets, 18}));
    expect_all_needed({octets, 18}, parse_ddp_untagged);
  }
}

// The control octet alone tells which header follows.
TEST(DdpHeaders, TheControlOctetTellsTheSize) {
  for (uint32_t control = 0; control < 256; ++control) {
    const auto octet = static_cast<uint8_t>(control);
    EXPECT_EQ(is_ddp_tagged(octet), control >= 128);
    EXPECT_EQ(ddp_header_size(octet), control >= 128 ? 14u : 18u);
  }
}

TEST(DdpHeaders, NothingIsWrittenBehindThem) {
  EXPECT_EQ(
      written(kDdpTaggedSize,
              [](uint8_t* p) { write_ddp(p, DdpTaggedHeader{.last = true, .stag = 1, .to = 2}); }),
      (Octets{0xc1, 0, 0, 0, 0, 1, 0, 0, 0, 0, 0, 0, 0, 2}));
  EXPECT_EQ(written(kDdpUntaggedSize,
                    [](uint8_t* p) {
                      write_ddp(p, DdpUntaggedHeader{.rsvd_ulp_tail = 5, .qn = 1, .mo = 7});
                    }),
            (Octets{0x01, 0, 0, 0, 0, 5, 0, 0, 0, 1, 0, 0, 0, 0, 0, 0, 0, 7}));
}

}  // namespace
}  // namespace rnic::wire

#include "wire/terminate.hpp"

#include "exact.hpp"

namespace rnic::wire {
namespace {

/// Everything that a Terminate can have; the DDP header is an untagged one.
Terminate whole() {
  Terminate t{.layer = 1,
              .type = 2,
              .code = 0x05,
              .length_valid = true,
              .segment_length = 0x0123,
              .ddp_header_size = 18,
              .has_rdma_header = true};
  for (size_t i = 0; i < t.ddp_header.size(); ++i) t.ddp_header[i] = static_cast<uint8_t>(i);
  for (size_t i = 0; i < t.rdma_header.size(); ++i) {
    t.rdma_header[i] = static_cast<uint8_t>(0x80 + i);
  }
  return t;
}

Octets octets_of(const Terminate& t) {
  Octets octets(kTerminateSizeMax, 0xee);
  octets.resize(write_terminate(octets.data(), t));
  return octets;
}

const auto kByRfc = [](base::ByteView in) { return parse_terminate(in, TerminateBitOrder::Rfc); };

// RFC 5040 figure 8, octet by octet.
TEST(TerminateWire, EveryFieldAtItsPlace) {
  const Octets octets = octets_of(whole());
  ASSERT_EQ(octets.size(), kTerminateSizeMax);
  EXPECT_EQ(Octets(octets.begin(), octets.begin() + 7),
            (Octets{0x12, 0x05, 0xe0, 0x00, 0x01, 0x23, 0x00}));
  for (size_t i = 0; i < 18; ++i) EXPECT_EQ(octets[6 + i], i);
  for (size_t i = 0; i < 28; ++i) EXPECT_EQ(octets[24 + i], 0x80 + i);
  const auto back = kByRfc(Exact(octets).view());
  ASSERT_TRUE(back);
  EXPECT_EQ(back->layer, 1);
  EXPECT_EQ(back->type, 2);
  EXPECT_EQ(back->code, 5);
  EXPECT_TRUE(back->length_valid && back->has_rdma_header && back->exact);
  EXPECT_EQ(back->segment_length, 0x0123);
  EXPECT_EQ(back->ddp_header_size, 18);
  EXPECT_EQ(back->ddp_header, whole().ddp_header);
  EXPECT_EQ(back->rdma_header, whole().rdma_header);
}

// With each set of what may follow: as long as the flags say, and not one octet less will do.
TEST(TerminateWire, EveryOctetThatTheFlagsAnnounceIsNeeded) {
  for (const uint8_t header : {0, 14, 18}) {
    for (const bool rdma : {false, true}) {
      Terminate t = whole();
      t.ddp_header_size = header;
      t.ddp_header[0] = header == 14 ? 0x81 : 0x01;
      t.has_rdma_header = rdma;
      t.length_valid = header != 0;
      Octets octets = octets_of(t);
      ASSERT_EQ(octets.size(), 4u + (header != 0 ? 2 + header : 0) + (rdma ? 28 : 0));
      expect_all_needed(octets, kByRfc);
      EXPECT_EQ(octets_of(*kByRfc(octets)), octets);
      octets.push_back(0);
      ASSERT_TRUE(kByRfc(octets));
      EXPECT_FALSE(kByRfc(octets)->exact) << "an octet that no flag announces";
    }
  }
}

TEST(TerminateWire, ReservedBitsAreIgnored) {
  Octets octets = octets_of(whole());
  octets[kTerminateFlagsAt] |= 0x1f;
  octets[kTerminateFlagsAt + 1] = 0xff;
  const auto back = kByRfc(octets);
  ASSERT_TRUE(back && back->exact);
  EXPECT_EQ(octets_of(*back), octets_of(whole()));
}

// The other order of bits: nibbles exchanged, flags at the other end of their octet.
TEST(TerminateWire, TheOrderOfLinuxSiw) {
  Octets octets = octets_of(whole());
  octets[kTerminateLayerTypeAt] = 0x21;
  octets[kTerminateFlagsAt] = 0x07;
  const auto siw = [](base::ByteView in) { return parse_terminate(in, TerminateBitOrder::Siw); };
  expect_all_needed(octets, siw);
  const auto back = siw(octets);
  ASSERT_TRUE(back && back->exact);
  EXPECT_EQ(octets_of(*back), octets_of(whole()));
}

}  // namespace
}  // namespace rnic::wire

#include "wire/ipv6.hpp"

#include "exact.hpp"

namespace rnic::wire {
namespace {

const Octets kIpv6Octets{0x6a, 0xbc, 0xde, 0xf0, 0x00, 0x08, 0x06, 0x40, 0x20, 0x01,
                         0x0d, 0xb8, 0,    0,    0,    0,    0,    0,    0,    0,
                         0,    0,    0,    1,    0xfe, 0x80, 0,    0,    0,    0,
                         0,    0,    0x02, 0x11, 0x22, 0xff, 0xfe, 0x33, 0x44, 0x55};

/// kIpv6Octets with the eight octets that its length tells of.
Octets ipv6_packet() {
  Octets octets = kIpv6Octets;
  octets.resize(48, 0x77);
  return octets;
}

// RFC 8200 s.3
TEST(Ipv6Wire, EveryFieldAtItsPlace) {
  const auto ip = parse_ipv6(Exact(ipv6_packet()).view());
  ASSERT_TRUE(ip);
  EXPECT_EQ(ip->traffic_class, 0xab);
  EXPECT_EQ(ip->flow_label, 0xcdef0u);
  EXPECT_EQ(ip->payload_length, 8u);
  EXPECT_EQ(ip->next_header, kProtocolTcp);
  EXPECT_EQ(ip->hop_limit, 64);
  EXPECT_EQ(ip->source.high, 0x20010db800000000u);
  EXPECT_EQ(ip->source.low, 1u);
  EXPECT_EQ(ip->destination.high, 0xfe80000000000000u);
  EXPECT_EQ(ip->destination.low, 0x021122fffe334455u);
  EXPECT_EQ(written(kIpv6Header, [&](uint8_t* p) { write_ipv6(p, *ip); }), kIpv6Octets);
}

TEST(Ipv6Wire, EveryOctetOfThePacketIsNeededAndPaddingIsNot) {
  expect_all_needed(ipv6_packet(), parse_ipv6);
  Octets padded = ipv6_packet();
  padded.resize(60);
  ASSERT_TRUE(parse_ipv6(padded));
  EXPECT_EQ(parse_ipv6(padded)->payload_length, 8u);
}

TEST(Ipv6Wire, OtherVersionsAreRefused) {
  for (uint8_t version = 0; version < 16; ++version) {
    Octets octets = ipv6_packet();
    octets[0] = static_cast<uint8_t>(version << 4 | 0x0a);
    EXPECT_EQ(parse_ipv6(octets).has_value(), version == 6) << int{version};
  }
}

// A label has 20 bits: one that is too wide does not reach the traffic class.
TEST(Ipv6Wire, AWideFlowLabelStaysInItsField) {
  const Octets octets = written(kIpv6Header, [](uint8_t* p) {
    write_ipv6(p, {.traffic_class = 0x12, .flow_label = 0xfff00001});
  });
  EXPECT_EQ(base::load_be32(octets.data()), 0x61200001u);
}

TEST(Ipv6Wire, AnAddressGoesThereAndBackAndNoFarther) {
  const Ipv6Address address{0x0102030405060708, 0x090a0b0c0d0e0f10};
  const Octets octets = written(16, [&](uint8_t* p) { store_ipv6_address(p, address); });
  for (size_t i = 0; i < 16; ++i) EXPECT_EQ(octets[i], i + 1);
  const Ipv6Address back = load_ipv6_address(Exact(octets).view().data());
  EXPECT_EQ(back.high, address.high);
  EXPECT_EQ(back.low, address.low);
}

// RFC 8200 s.4: the numbers that chain headers, and the places in a fragment header (s.4.5).
TEST(Ipv6Wire, ExtensionHeaders) {
  EXPECT_EQ(kNextHopByHop, 0);
  EXPECT_EQ(kNextRouting, 43);
  EXPECT_EQ(kNextFragment, 44);
  EXPECT_EQ(kNextIcmpv6, 58);
  EXPECT_EQ(kNextNone, 59);
  EXPECT_EQ(kNextDestinationOptions, 60);
  const Octets fragment{kProtocolTcp, 0, 0x05, 0xa9, 0xde, 0xad, 0xbe, 0xef};
  ASSERT_EQ(fragment.size(), kIpv6FragmentHeader);
  EXPECT_EQ(base::load_be16(&fragment[kIpv6FragmentOffsetAt]) & 0xfff8, 1448);
  EXPECT_EQ(base::load_be16(&fragment[kIpv6FragmentOffsetAt]) & 1, 1) << "more behind it";
  EXPECT_EQ(base::load_be32(&fragment[kIpv6FragmentIdAt]), 0xdeadbeefu);
}

}  // namespace
}  // namespace rnic::wire

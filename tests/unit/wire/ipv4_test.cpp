#include "wire/ipv4.hpp"

#include <random>

#include "exact.hpp"

namespace rnic::wire {
namespace {

// The checksum is the one of these ten words (RFC 1071): b1e6 complements the sum of the others.
const Octets kIpv4Octets{0x45, 0x00, 0x00, 0x3c, 0x1c, 0x46, 0x40, 0x00, 0x40, 0x06,
                         0xb1, 0xe6, 0xac, 0x10, 0x0a, 0x63, 0xac, 0x10, 0x0a, 0x0c};

/// kIpv4Octets with the 40 octets that its length tells of.
Octets ipv4_packet() {
  Octets octets = kIpv4Octets;
  octets.resize(60, 0x77);
  return octets;
}

// RFC 791 s.3.1
TEST(Ipv4Wire, EveryFieldAtItsPlace) {
  const Octets octets = ipv4_packet();
  const auto ip = parse_ipv4(Exact(octets).view());
  ASSERT_TRUE(ip);
  EXPECT_EQ(ip->header_length, 20u);
  EXPECT_EQ(ip->total_length, 60u);
  EXPECT_EQ(ip->tos, 0);
  EXPECT_EQ(ip->id, 0x1c46);
  EXPECT_EQ(ip->fragment, kIpv4DontFragment);
  EXPECT_FALSE(ip->is_fragment());
  EXPECT_EQ(ip->ttl, 64);
  EXPECT_EQ(ip->protocol, kProtocolTcp);
  EXPECT_EQ(ip->source, 0xac100a63u);
  EXPECT_EQ(ip->destination, 0xac100a0cu);
  EXPECT_EQ(written(kIpv4Header, [&](uint8_t* p) { write_ipv4(p, *ip); }), kIpv4Octets);
}

TEST(Ipv4Wire, EachFieldComesBackAlone) {
  const Ipv4 ip{.total_length = 0xabcd,
                .tos = 0xb9,
                .id = 0x1234,
                .fragment = 0x2005,
                .ttl = 3,
                .protocol = 0xfe,
                .source = 0x01020304,
                .destination = 0xf1f2f3f4};
  Octets octets = written(kIpv4Header, [&](uint8_t* p) { write_ipv4(p, ip); });
  EXPECT_TRUE(ipv4_checksum_good(octets));
  octets.resize(0xabcd);
  const auto back = parse_ipv4(octets);
  ASSERT_TRUE(back);
  EXPECT_EQ(back->total_length, ip.total_length);
  EXPECT_EQ(back->tos, ip.tos);
  EXPECT_EQ(back->id, ip.id);
  EXPECT_EQ(back->fragment, ip.fragment);
  EXPECT_TRUE(back->is_fragment());
  EXPECT_EQ(back->ttl, ip.ttl);
  EXPECT_EQ(back->protocol, ip.protocol);
  EXPECT_EQ(back->source, ip.source);
  EXPECT_EQ(back->destination, ip.destination);
}

TEST(Ipv4Wire, EveryOctetOfThePacketIsNeededAndPaddingIsNot) {
  expect_all_needed(ipv4_packet(), parse_ipv4);
  Octets padded = ipv4_packet();
  padded.resize(100);
  ASSERT_TRUE(parse_ipv4(padded));
  EXPECT_EQ(parse_ipv4(padded)->total_length, 60u);
}

// Every version and header length over every total length near the edges.
TEST(Ipv4Wire, ImpossibleVersionsAndLengthsAreRefused) {
  for (uint32_t first = 0; first < 256; ++first) {
    for (const uint16_t total : {0, 19, 20, 24, 59, 60, 61, 0xffff}) {
      Octets octets = ipv4_packet();
      octets[kIpv4VersionAt] = static_cast<uint8_t>(first);
      base::store_be16(&octets[kIpv4LengthAt], total);
      const uint32_t header = (first & 15) * 4;
      const bool legal = first >> 4 == 4 && header >= 20 && header <= total && total <= 60;
      const auto ip = parse_ipv4(Exact(octets).view());
      ASSERT_EQ(ip.has_value(), legal) << first << " of " << total;
      if (legal) {
        EXPECT_EQ(ip->header_length, header);
      }
    }
  }
}

TEST(Ipv4Wire, AFragmentHasAnOffsetOrMoreBehindIt) {
  EXPECT_FALSE((Ipv4{.fragment = 0}.is_fragment()));
  EXPECT_FALSE((Ipv4{.fragment = 0x8000 | kIpv4DontFragment}.is_fragment()));
  EXPECT_TRUE((Ipv4{.fragment = kIpv4MoreFragments}.is_fragment()));
  for (int bit = 0; bit < 13; ++bit) {
    EXPECT_TRUE((Ipv4{.fragment = static_cast<uint16_t>(1 << bit)}.is_fragment())) << bit;
  }
}

TEST(Ipv4Wire, AnyFlippedBitSpoilsTheChecksum) {
  EXPECT_TRUE(ipv4_checksum_good(Exact(kIpv4Octets).view()));
  for (size_t i = 0; i < kIpv4Octets.size() * 8; ++i) {
    Octets flipped = kIpv4Octets;
    flipped[i / 8] ^= static_cast<uint8_t>(1 << i % 8);
    EXPECT_FALSE(ipv4_checksum_good(flipped)) << i;
  }
}

// The header's sum has a loop of its own; the one of RFC 1071 over any octets is the reference.
TEST(Ipv4Wire, TheChecksumOfAHeaderOfAnyLengthIsTheInternetChecksum) {
  std::mt19937 random(791);
  for (size_t length = 20; length <= 60; length += 4) {
    for (const int fill : {0x00, 0xff, -1}) {  // no carry, every carry, random octets
      Octets header(length, static_cast<uint8_t>(fill));
      for (size_t i = 0; fill == -1 && i < length; ++i) header[i] = static_cast<uint8_t>(random());
      EXPECT_EQ(ipv4_checksum_good(Exact(header).view()),
                checksum_fold(checksum_add(0, header)) == 0)
          << length << " filled with " << fill;
      base::store_be16(&header[kIpv4ChecksumAt], 0);
      for (uint32_t sum = 0; sum <= 0xffff; ++sum) {
        base::store_be16(&header[kIpv4ChecksumAt], static_cast<uint16_t>(sum));
        ASSERT_EQ(ipv4_checksum_good(header), checksum_fold(checksum_add(0, header)) == 0)
            << length << " filled with " << fill << ", sum " << sum;
      }
    }
  }
}

}  // namespace
}  // namespace rnic::wire

#include "wire/arp.hpp"

#include "exact.hpp"

namespace rnic::wire {
namespace {

const Octets kArpOctets{0x00, 0x01, 0x08, 0x00, 6,  4, 0x00, 0x01, 0x02, 0x11,
                        0x22, 0x33, 0x44, 0x55, 10, 1, 2,    3,    0,    0,
                        0,    0,    0,    0,    10, 1, 2,    4};

// RFC 826: the octets of a request, both ways.
TEST(ArpWire, EveryFieldAtItsPlace) {
  const auto arp = parse_arp(Exact(kArpOctets).view());
  ASSERT_TRUE(arp);
  EXPECT_EQ(arp->operation, kArpRequest);
  EXPECT_EQ(arp->sender_mac, (MacAddress{0x02, 0x11, 0x22, 0x33, 0x44, 0x55}));
  EXPECT_EQ(arp->sender_ip, 0x0a010203u);
  EXPECT_EQ(arp->target_mac, MacAddress{});
  EXPECT_EQ(arp->target_ip, 0x0a010204u);
  EXPECT_EQ(written(kArpPacket, [&](uint8_t* p) { write_arp(p, *arp); }), kArpOctets);
}

TEST(ArpWire, AReplyComesBackAsItWent) {
  const Arp reply{kArpReply, {2, 3, 4, 5, 6, 7}, 0xc0a80001, {8, 9, 10, 11, 12, 13}, 0xfffefdfc};
  const Octets octets = written(kArpPacket, [&](uint8_t* p) { write_arp(p, reply); });
  const auto back = parse_arp(octets);
  ASSERT_TRUE(back);
  EXPECT_EQ(back->operation, kArpReply);
  EXPECT_EQ(back->sender_mac, reply.sender_mac);
  EXPECT_EQ(back->sender_ip, reply.sender_ip);
  EXPECT_EQ(back->target_mac, reply.target_mac);
  EXPECT_EQ(back->target_ip, reply.target_ip);
}

TEST(ArpWire, EveryOctetIsNeededAndPaddingIsNot) {
  expect_all_needed(kArpOctets, parse_arp);
  Octets padded = kArpOctets;
  padded.resize(46, 0x5a);
  EXPECT_TRUE(parse_arp(padded));
}

// Other hardware, protocol, lengths and operations are not ours.
TEST(ArpWire, OthersAreRefused) {
  for (size_t at = 0; at < kArpSenderMacAt; ++at) {
    for (int bit = 0; bit < 8; ++bit) {
      Octets other = kArpOctets;
      other[at] ^= static_cast<uint8_t>(1 << bit);
      EXPECT_FALSE(parse_arp(other)) << at << " bit " << bit;
    }
  }
  Octets third = kArpOctets;
  third[kArpOperationAt + 1] = 3;
  EXPECT_FALSE(parse_arp(third));
}

}  // namespace
}  // namespace rnic::wire

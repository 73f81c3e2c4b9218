#include "wire/ether.hpp"

#include "exact.hpp"

namespace rnic::wire {
namespace {

constexpr MacAddress kOne{0x02, 0x11, 0x22, 0x33, 0x44, 0x55};
constexpr MacAddress kTwo{0x06, 0x66, 0x77, 0x88, 0x99, 0xaa};

// RFC 894: destination, source, type.
TEST(Ether, EveryFieldAtItsPlace) {
  const Octets frame =
      written(kEtherHeader, [](uint8_t* p) { write_ether(p, kOne, kTwo, kEtherTypeIpv6); });
  EXPECT_EQ(frame, (Octets{0x02, 0x11, 0x22, 0x33, 0x44, 0x55,  //
                           0x06, 0x66, 0x77, 0x88, 0x99, 0xaa, 0x86, 0xdd}));
  EXPECT_EQ(load_mac(&frame[kEtherDestinationAt]), kOne);
  EXPECT_EQ(load_mac(&frame[kEtherSourceAt]), kTwo);
  EXPECT_EQ(base::load_be16(&frame[kEtherTypeAt]), kEtherTypeIpv6);
}

// IEEE 802.1Q: the tag stands where the type was, and the type behind it.
TEST(Ether, ATagIsBetweenTheAddressesAndTheType) {
  const Octets frame = written(kEtherHeader + kVlanTag, [](uint8_t* p) {
    write_ether(p, kOne, kTwo, kEtherTypeVlan);
    base::store_be16(p + kVlanControlAt, 0xe123);
    base::store_be16(p + kVlanTypeAt, kEtherTypeIpv4);
  });
  EXPECT_EQ(Octets(frame.begin() + 12, frame.end()), (Octets{0x81, 0x00, 0xe1, 0x23, 0x08, 0x00}));
  EXPECT_EQ(base::load_be16(&frame[kVlanControlAt]) & kVlanIdMask, 0x123);
}

TEST(Ether, AnAddressGoesThereAndBackAndNoFarther) {
  const Octets six = written(6, [](uint8_t* p) { store_mac(p, kOne); });
  EXPECT_EQ(load_mac(Exact(six).view().data()), kOne);
}

TEST(Ether, GroupsAndStations) {
  EXPECT_TRUE(is_multicast(kMacBroadcast));
  EXPECT_TRUE(is_multicast({0x33, 0x33, 0, 0, 0, 1}));
  EXPECT_FALSE(is_multicast(kOne));
  EXPECT_TRUE(is_station(kOne));
  EXPECT_FALSE(is_station(kMacBroadcast));
  EXPECT_FALSE(is_station({0x01, 0, 0, 0, 0, 0}));
  EXPECT_FALSE(is_station(MacAddress{}));
}

}  // namespace
}  // namespace rnic::wire

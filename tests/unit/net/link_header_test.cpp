// LinkHeader: the header of frames to one station, which is remembered.

#include "net/link_header.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <array>

#include "wire/ether.hpp"

namespace rnic::net {
namespace {

constexpr port::MacAddress kOwn{2, 0, 0, 0, 0, 1};

void expect_header(LinkHeader& link, const port::MacAddress& to, uint16_t type) {
  std::array<uint8_t, wire::kEtherHeader + wire::kVlanTag> expected{};
  link.write(expected.data(), type);
  wire::store_mac(expected.data() + wire::kEtherDestinationAt, to);
  const LinkHeader::Octets& made = link.to(to, type);
  EXPECT_TRUE(std::equal(made.begin(), made.begin() + link.size(), expected.begin()));
  EXPECT_EQ(wire::load_mac(made.data() + wire::kEtherSourceAt), kOwn);
}

// Stations that differ in any octet of their address, or in the type, have headers of their own.
TEST(LinkHeader, IsMadeAgainForAnotherStationOrType) {
  for (const uint16_t vlan : {0, 7}) {
    LinkHeader link(kOwn, vlan);
    expect_header(link, {}, wire::kEtherTypeIpv4);
    port::MacAddress station{2, 0, 0, 0, 0, 2};
    for (uint8_t& octet : station) {
      expect_header(link, station, wire::kEtherTypeIpv4);
      octet ^= 0x80;
      expect_header(link, station, wire::kEtherTypeIpv4);
      expect_header(link, station, wire::kEtherTypeIpv4);
      expect_header(link, station, wire::kEtherTypeIpv6);
    }
  }
}

}  // namespace
}  // namespace rnic::net

#include "wire/nd.hpp"

#include "exact.hpp"

namespace rnic::wire {
namespace {

const Octets kAdvertisement{136, 0, 0, 0, 0xe0, 0,    0,    0,    0xfe, 0x80, 0,
                            0,   0, 0, 0, 0,    0,    0,    0,    0,    0,    0,
                            0,   7, 2, 1, 2,    0x11, 0x22, 0x33, 0x44, 0x55};

// RFC 4861 s.4.4 and 4.6.1, both ways.
TEST(NeighbourWire, EveryFieldAtItsPlace) {
  const auto message = parse_neighbour_message(Exact(kAdvertisement).view());
  ASSERT_TRUE(message);
  EXPECT_EQ(message->type, kIcmpv6NeighbourAdvertisement);
  EXPECT_EQ(message->flags, kNdFlagRouter | kNdFlagSolicited | kNdFlagOverride);
  EXPECT_EQ(message->target.high, 0xfe80000000000000u);
  EXPECT_EQ(message->target.low, 7u);
  ASSERT_TRUE(message->link);
  EXPECT_EQ(*message->link, (MacAddress{2, 0x11, 0x22, 0x33, 0x44, 0x55}));
  EXPECT_EQ(written(kNdMessage,
                    [&](uint8_t* p) { EXPECT_EQ(write_neighbour_message(p, *message), 32u); }),
            kAdvertisement);
}

TEST(NeighbourWire, WithoutAnAddressTheOptionIsNotWritten) {
  const NeighbourMessage question{kIcmpv6NeighbourSolicitation, 0, {1, 2}, {}};
  const Octets octets = written(kNdOptionsAt, [&](uint8_t* p) {
    EXPECT_EQ(write_neighbour_message(p, question), kNdOptionsAt);
  });
  const auto back = parse_neighbour_message(Exact(octets).view());
  ASSERT_TRUE(back);
  EXPECT_FALSE(back->link);
  EXPECT_EQ(back->target.low, 2u);
}

// The lengths that are none: inside the fixed part, and inside the option.
TEST(NeighbourWire, ShorterOnesAreRefused) {
  for (size_t size = 0; size <= kAdvertisement.size(); ++size) {
    const bool legal = size == kNdOptionsAt || size == kNdMessage;
    EXPECT_EQ(parse_neighbour_message(Exact(kAdvertisement, size).view()).has_value(), legal)
        << size;
  }
}

// RFC 4861 s.7.1: a code, a multicast target, an option without a length.
TEST(NeighbourWire, ImpossibleOnesAreRefused) {
  Octets octets = kAdvertisement;
  octets[kIcmpCodeAt] = 1;
  EXPECT_FALSE(parse_neighbour_message(octets));
  octets = kAdvertisement;
  octets[kNdTargetAt] = 0xff;
  EXPECT_FALSE(parse_neighbour_message(octets));
  for (uint32_t length = 0; length < 256; ++length) {
    octets = kAdvertisement;
    octets[kNdOptionsAt + 1] = static_cast<uint8_t>(length);
    EXPECT_EQ(parse_neighbour_message(Exact(octets).view()).has_value(), length == 1) << length;
  }
}

TEST(NeighbourWire, OptionsThatNobodyKnowsAreSkipped) {
  Octets octets = kAdvertisement;
  octets[kNdOptionsAt] = kNdSourceLink;  // of a question, in an answer
  EXPECT_FALSE(parse_neighbour_message(octets)->link);
  octets.insert(octets.begin() + kNdOptionsAt, {253, 2, 9, 9, 9, 9, 9, 9, 9, 9, 9, 9, 9, 9, 9, 9});
  octets[kNdOptionsAt + 16] = kNdTargetLink;
  const auto message = parse_neighbour_message(Exact(octets).view());
  ASSERT_TRUE(message && message->link);
  EXPECT_EQ((*message->link)[5], 0x55);
}

// Reserved octets are not looked at.
TEST(NeighbourWire, ReservedBitsAreIgnored) {
  Octets octets = kAdvertisement;
  octets[kNdFlagsAt + 1] = octets[kNdFlagsAt + 2] = octets[kNdFlagsAt + 3] = 0xff;
  EXPECT_TRUE(parse_neighbour_message(octets));
}

// RFC 2464 s.7, RFC 4291 s.2.7.1
TEST(NeighbourWire, GroupsAndTheirAddresses) {
  const Ipv6Address group = solicited_node({0xfe80000000000000, 0x021122fffe334455});
  EXPECT_EQ(group.high, 0xff02000000000000u);
  EXPECT_EQ(group.low, 0x00000001ff334455u);
  EXPECT_EQ(multicast_mac(group), (MacAddress{0x33, 0x33, 0xff, 0x33, 0x44, 0x55}));
  EXPECT_EQ(multicast_mac(kAllNodes), (MacAddress{0x33, 0x33, 0, 0, 0, 1}));
}

}  // namespace
}  // namespace rnic::wire

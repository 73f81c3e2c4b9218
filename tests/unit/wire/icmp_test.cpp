#include "wire/icmp.hpp"

#include "base/endian.hpp"
#include "exact.hpp"
#include "wire/inet_checksum.hpp"

namespace rnic::wire {
namespace {

// RFC 792: an echo request as it is on the wire.
TEST(IcmpWire, AnEcho) {
  const Octets echo{8, 0, 0xe5, 0xca, 0x12, 0x34, 0x00, 0x01};
  ASSERT_EQ(echo.size(), kIcmpHeader);
  EXPECT_EQ(echo[kIcmpTypeAt], kIcmpEchoRequest);
  EXPECT_EQ(echo[kIcmpCodeAt], 0);
  EXPECT_EQ(base::load_be16(&echo[kIcmpChecksumAt]), 0xe5ca);
  EXPECT_EQ(checksum_fold(checksum_add(0, echo)), 0);
  EXPECT_EQ(base::load_be16(&echo[kIcmpIdAt]), 0x1234);
  EXPECT_EQ(base::load_be16(&echo[kIcmpSequenceAt]), 1);
}

// RFC 1191 s.4 and RFC 4443 s.3.2: where the MTU stands.
TEST(IcmpWire, AnMtu) {
  const Octets needed{3, 4, 0, 0, 0, 0, 0x05, 0xdc};
  EXPECT_EQ(needed[kIcmpTypeAt], kIcmpUnreachable);
  EXPECT_EQ(needed[kIcmpCodeAt], kIcmpFragmentationNeeded);
  EXPECT_EQ(base::load_be16(&needed[kIcmpMtuAt]), 1500);
  const Octets too_big{2, 0, 0, 0, 0x00, 0x01, 0x05, 0x00};
  EXPECT_EQ(too_big[kIcmpTypeAt], kIcmpv6PacketTooBig);
  EXPECT_EQ(base::load_be32(&too_big[kIcmpRestAt]), 66816u);
}

// RFC 4443 s.2.1: errors have types below 128.
TEST(IcmpWire, ErrorsStandBelowWhatInforms) {
  for (const uint8_t error :
       {kIcmpv6Unreachable, kIcmpv6PacketTooBig, kIcmpv6TimeExceeded, kIcmpv6ParameterProblem}) {
    EXPECT_LT(error, kIcmpv6FirstInformational);
  }
  for (const uint8_t told :
       {kIcmpv6EchoRequest, kIcmpv6EchoReply, kIcmpv6RouterSolicitation, kIcmpv6RouterAdvertisement,
        kIcmpv6NeighbourSolicitation, kIcmpv6NeighbourAdvertisement, kIcmpv6Redirect}) {
    EXPECT_GE(told, kIcmpv6FirstInformational);
  }
}

}  // namespace
}  // namespace rnic::wire

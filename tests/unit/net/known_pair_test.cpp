// The short way in says nothing of a frame unless every octet that a judgement depends on is as in
// the frame that was judged.
#include "net/known_pair.hpp"

#include "ipv6_fixture.hpp"

namespace rnic::net {
namespace {

// Octets 2 and 3 stand where the fragment field of IPv4 is in the second pattern.
constexpr port::MacAddress kMac{2, 0x11, 0x22, 0x33, 0x44, 0x55};
constexpr uint32_t kIp = wire::kEtherHeader;

const Octets kSegment{1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16, 17, 18, 19, 20};

port::Packet packet_of(Octets& octets, port::Checksum ip = port::Checksum::Good) {
  port::Packet packet;
  packet.data = octets.data();
  packet.length = static_cast<uint32_t>(octets.size());
  packet.ip_checksum = ip;
  return packet;
}

Octets frame_of(bool v4, uint8_t traffic_class = 0) {
  if (v4) {
    wire::Ipv4 ip;
    ip.tos = traffic_class;
    return ip_frame(ip, kSegment, kMac);
  }
  wire::Ipv6 ip = with_next(wire::kProtocolTcp);
  ip.traffic_class = traffic_class;
  return ip6_frame(ip, kSegment, kMac);
}

class KnownPairTest : public ::testing::TestWithParam<bool> {
 protected:
  void learn(bool v4) {
    Octets octets = frame_of(v4);
    const Octets before = octets;
    pair_.learn(packet_of(octets), {.source = v4 ? kPeer : kPeer6,
                                    .destination = v4 ? kOurs : kOurs6,
                                    .protocol = wire::kProtocolTcp});
    EXPECT_EQ(octets, before) << "a received frame is only looked at";
  }
  bool known(Octets octets, port::Checksum ip = port::Checksum::Good) {
    TcpIn in = pair_.nothing();
    const bool is = pair_.open(packet_of(octets, ip), in, counters_);
    ecn_ = in.ecn;
    payload_.assign(in.payload.begin(), in.payload.end());
    return is;
  }

  KnownPair pair_{kMac, 0, false};
  Counters counters_;
  uint8_t ecn_ = 0;
  Octets payload_;
};

TEST_P(KnownPairTest, OpensTheSamePairWithEveryCodepoint) {
  const bool v4 = GetParam();
  EXPECT_FALSE(known(frame_of(v4)));
  learn(v4);
  for (uint8_t ecn = 0; ecn < 4; ++ecn) {
    Octets padded = frame_of(v4, static_cast<uint8_t>(0xb8 | ecn));
    padded.resize(90, 0xee);
    ASSERT_TRUE(known(padded));
    EXPECT_EQ(ecn_, ecn);
    EXPECT_EQ(payload_, kSegment);
  }
  EXPECT_EQ(v4 ? counters_.ip_in : counters_.ip6_in, 4u);
  EXPECT_FALSE(known(frame_of(!v4))) << "the other version's addresses were not judged";
  pair_.forget();
  EXPECT_FALSE(known(frame_of(v4)));
  learn(!v4);
  EXPECT_TRUE(known(frame_of(!v4)));
  EXPECT_FALSE(known(frame_of(v4)));
}

TEST_P(KnownPairTest, EachOctetThatMattersIsCompared) {
  const bool v4 = GetParam();
  learn(v4);
  const Octets good = frame_of(v4);
  // What may differ: the source's MAC address, the type of service or the flow's label, the
  // identification, DF, the time to live and (a port vouches for it) the checksum.
  const auto free = [v4](uint32_t at, uint8_t bit) {
    if (at >= 6 && at < 12) return true;
    if (!v4) return (at == kIp && bit < 0x10) || (at > kIp && at < kIp + 4) || at == kIp + 7;
    return at == kIp + 1 || at == kIp + 4 || at == kIp + 5 || (at == kIp + 6 && bit >= 0x40) ||
           at == kIp + 8 || at == kIp + 10 || at == kIp + 11;
  };
  const uint32_t length_at = kIp + (v4 ? wire::kIpv4LengthAt : wire::kIpv6LengthAt);
  for (uint32_t at = 0; at < good.size() - kSegment.size(); ++at) {
    if (at == length_at || at == length_at + 1) continue;
    for (uint8_t bit = 1; bit != 0; bit = static_cast<uint8_t>(bit << 1)) {
      Octets other = good;
      other[at] ^= bit;
      EXPECT_EQ(known(other), free(at, bit)) << "octet " << at << " bit " << int{bit};
    }
  }
}

TEST_P(KnownPairTest, LengthsAreThoseOfThePacket) {
  const bool v4 = GetParam();
  learn(v4);
  const Octets good = frame_of(v4);
  for (size_t size = 0; size < good.size(); ++size) {
    EXPECT_FALSE(known({good.begin(), good.begin() + static_cast<long>(size)})) << size;
  }
  const uint32_t least = v4 ? wire::kIpv4Header : 0;  // IPv6 counts the payload alone
  const uint32_t most = v4 ? wire::kIpv4Header + 20 : 20;
  for (uint32_t length = 0; length <= most + 1; ++length) {
    Octets other = good;
    base::store_be16(&other[kIp + (v4 ? wire::kIpv4LengthAt : wire::kIpv6LengthAt)],
                     static_cast<uint16_t>(length));
    const bool fits = length >= least && length <= most;
    ASSERT_EQ(known(other), fits) << length;
    if (fits) {
      EXPECT_EQ(payload_.size(), length - least);
    }
  }
}
INSTANTIATE_TEST_SUITE_P(Versions, KnownPairTest, ::testing::Bool());

class KnownPairOfIpv4 : public KnownPairTest {};

TEST_P(KnownPairOfIpv4, TheHeaderChecksumIsOursToCheckUnlessThePortDid) {
  learn(true);
  Octets broken = frame_of(true);
  EXPECT_TRUE(known(broken, port::Checksum::Unknown));
  EXPECT_FALSE(known(broken, port::Checksum::Bad));
  broken[kIp + 10] ^= 1;
  EXPECT_FALSE(known(broken, port::Checksum::Unknown));
  EXPECT_TRUE(known(broken, port::Checksum::Good));
}
INSTANTIATE_TEST_SUITE_P(Versions, KnownPairOfIpv4, ::testing::Values(true));

TEST(KnownPairOfAVlan, NothingIsRemembered) {
  KnownPair pair(kMac, 7, false);
  Counters counters;
  for (const bool v4 : {true, false}) {
    Octets octets = frame_of(v4);
    const port::Packet packet = packet_of(octets);
    pair.learn(packet, {.source = v4 ? kPeer : kPeer6, .destination = v4 ? kOurs : kOurs6});
    TcpIn in = pair.nothing();
    EXPECT_FALSE(pair.open(packet, in, counters));
  }
}

}  // namespace
}  // namespace rnic::net

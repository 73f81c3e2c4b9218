#include "tcp/effective_mss.hpp"

#include "core_parts.hpp"

namespace rnic::testing {
namespace {

constexpr uint32_t kNoSearch = 0;

struct OneMss : CoreParts {
  /// \return EMSS, which follows what has changed
  uint32_t follow(uint32_t limit = kNoSearch) {
    const uint32_t before = mss.octets();
    const bool changed = mss.follow(limit, now);
    EXPECT_EQ(changed, mss.octets() != before);
    return mss.octets();
  }

  tcp::EffectiveMss mss{core};
};

TEST(EffectiveMss, IsThePathsUnlessThePeerTakesLess) {
  OneMss o;
  EXPECT_EQ(o.mss.octets(), 536u);
  EXPECT_EQ(o.follow(), 536u) << "a peer that has said nothing";
  o.mss.set_peer_mss(1460);
  EXPECT_EQ(o.follow(), 1460u);
  o.egress.mtu = 1400;
  EXPECT_EQ(o.follow(), 1360u);
  EXPECT_EQ(o.mss.packet_octets(), 1400u);
  o.mss.set_peer_mss(1000);
  EXPECT_EQ(o.follow(), 1000u);
  EXPECT_EQ(o.mss.packet_octets(), 1040u);
  EXPECT_EQ(o.mss.packet_limit_of_peer(), 1040u);
}

TEST(EffectiveMss, AnIpv6HeaderIsTwentyOctetsLonger) {
  OneMss o;
  o.binding.remote.address = IpAddress(0x20010db800000000, 2);
  o.mss.set_peer_mss(9000);
  EXPECT_EQ(o.follow(), 1440u);
  EXPECT_EQ(o.mss.packet_octets(), 1500u);
  EXPECT_EQ(o.mss.packet_limit_of_peer(), 9060u);
}

TEST(EffectiveMss, TheOptionsOnEverySegmentGoOff) {
  OneMss o;
  o.mss.set_peer_mss(1460);
  o.core.tcb.ts_ok = true;
  EXPECT_EQ(o.follow(), 1448u);
  EXPECT_EQ(o.mss.packet_octets(), 1500u);
  o.mss.set_peer_mss(1000);
  EXPECT_EQ(o.follow(), 988u) << "of what the peer takes, too (RFC 6691 s.2)";
}

TEST(EffectiveMss, TheUsersLimitOnlyLowersIt) {
  OneMss o;
  o.mss.set_peer_mss(1460);
  o.binding.options.max_segment = 700;
  EXPECT_EQ(o.follow(), 700u);
  o.core.tcb.ts_ok = true;
  EXPECT_EQ(o.follow(), 700u) << "it is of the payload";
  o.binding.options.max_segment = 9000;
  EXPECT_EQ(o.follow(), 1448u);
}

TEST(EffectiveMss, StaysWhereTheRouteIsGone) {
  OneMss o;
  o.mss.set_peer_mss(1460);
  EXPECT_EQ(o.follow(), 1460u);
  o.egress.mtu = 0;
  o.mss.set_peer_mss(1000);
  EXPECT_EQ(o.follow(), 1460u);
  o.egress.mtu = 1500;
  EXPECT_EQ(o.follow(), 1000u);
}

TEST(EffectiveMss, TheSearchGoesNoFurtherThanThePath) {
  OneMss o;
  o.mss.set_peer_mss(8960);
  EXPECT_EQ(o.follow(1024), 984u);
  EXPECT_EQ(o.follow(9000), 1460u);
  EXPECT_EQ(o.follow(1024), 984u);
  EXPECT_EQ(o.follow(kNoSearch), 1460u);
}

TEST(EffectiveMss, APathOfNoWidthStillHasTheSmallestSegments) {
  OneMss o;
  o.mss.set_peer_mss(1460);
  o.egress.mtu = 68;
  EXPECT_EQ(o.follow(), tcp::kSmallestMss);
  o.egress.mtu = 1500;
  EXPECT_EQ(o.follow(68), tcp::kSmallestMss);
}

TEST(EffectiveMss, ALargerOneIsGoodForOneRecord) {
  OneMss o;
  o.mss.set_peer_mss(1460);
  EXPECT_EQ(o.follow(1024), 984u);
  EXPECT_EQ(o.mss.replace(1300), 984u);
  EXPECT_EQ(o.mss.octets(), 1300u);
  EXPECT_EQ(o.mss.replace(984), 1300u);
  EXPECT_FALSE(o.mss.follow(1024, o.now));
}

TEST(EffectiveMss, IsNeverMoreThanThePeerTakes) {
  OneMss o;
  o.mss.validate();
  o.mss.set_peer_mss(200);
  o.mss.validate();  // no route yet: the default
  o.mss.set_peer_mss(1460);
  EXPECT_EQ(o.follow(), 1460u);
  o.mss.validate();
  o.mss.set_peer_mss(1000);
  EXPECT_DEATH(o.mss.validate(), "emss_");
  EXPECT_EQ(o.follow(), 1000u);
  o.mss.validate();
}

}  // namespace
}  // namespace rnic::testing

#include "net/routes.hpp"

#include "ipv6_fixture.hpp"

namespace rnic::net {
namespace {

IpAddress ip(const char* text) {
  const auto parsed = parse_ip(text);
  EXPECT_TRUE(parsed) << text;
  return parsed ? *parsed : IpAddress{};
}

Config many() {
  Config config;
  config.address = ip("10.0.0.1");
  config.prefix_length = 24;
  config.addresses = {{ip("192.168.1.1"), 30}, {ip("fd00::1"), 64}, {ip("2001:db8:1::5"), 48}};
  config.gateway = ip("10.0.0.254");
  config.gateway6 = ip("fe80::1");
  config.routes = {{{ip("10.1.0.0"), 16}, ip("10.0.0.2")},
                   {{ip("10.1.2.0"), 24}, ip("192.168.1.2")},
                   {{ip("fd01::"), 16}, ip("fd00::9")}};
  return config;
}

TEST(Routes, TheLongestPrefixWins) {
  const Routes routes(many(), kOurMac);
  const auto hop = [&](const char* to) {
    return to_string(routes.next_hop(ip(to)).value_or(IpAddress{}));
  };
  EXPECT_EQ(hop("10.0.0.77"), "10.0.0.77");
  EXPECT_EQ(hop("10.1.9.9"), "10.0.0.2");
  EXPECT_EQ(hop("10.1.2.3"), "192.168.1.2");
  EXPECT_EQ(hop("192.168.1.2"), "192.168.1.2");
  EXPECT_EQ(hop("192.168.1.5"), "10.0.0.254");
  EXPECT_EQ(hop("8.8.8.8"), "10.0.0.254");
  EXPECT_EQ(hop("fd00::77"), "fd00::77");
  EXPECT_EQ(hop("fd01:2::1"), "fd00::9");
  EXPECT_EQ(hop("2001:db8:1:ffff::1"), "2001:db8:1:ffff::1");
  EXPECT_EQ(hop("2001:db8:2::1"), "fe80::1");
  EXPECT_EQ(hop("fe80::5"), "fe80::5");
  for (const char* never : {"10.0.0.255", "192.168.1.3", "192.168.1.0", "127.0.0.1", "224.0.0.1",
                            "255.255.255.255", "::1", "::", "ff02::1", "10.0.0.1", "fd00::1"}) {
    EXPECT_FALSE(routes.next_hop(ip(never))) << never;
  }
}

// TCP-9293-3.9.1-01: the local address is chosen by routing.
TEST(Routes, TheSourceFollowsTheRoute) {
  const Routes routes(many(), kOurMac);
  const auto source = [&](const char* to) { return to_string(routes.source_for(ip(to))); };
  EXPECT_EQ(source("10.0.0.9"), "10.0.0.1");
  EXPECT_EQ(source("10.1.9.9"), "10.0.0.1");
  EXPECT_EQ(source("10.1.2.3"), "192.168.1.1");
  EXPECT_EQ(source("8.8.8.8"), "10.0.0.1");
  EXPECT_EQ(source("fd00::7"), "fd00::1");
  EXPECT_EQ(source("fd01::7"), "fd00::1");
  EXPECT_EQ(source("2001:db8:2::1"), "2001:db8:1::5");
  EXPECT_EQ(source("fe80::7"), to_string(kOurLinkLocal));
  EXPECT_TRUE(routes.source_for(ip("ff02::1")).is_unspecified());
  Config config = many();
  config.gateway6 = {};
  EXPECT_TRUE(Routes(config, kOurMac).source_for(ip("2001:db8:2::1")).is_unspecified());
}

TEST(Routes, FamiliesDoNotMix) {
  Config config;
  config.address = ip("fd00::1");
  config.prefix_length = 64;
  config.gateway6 = ip("fd00::2");
  const Routes six(config, kOurMac);
  EXPECT_FALSE(six.next_hop(ip("10.0.0.1")));  // the default route of IPv6 covers ::ffff:0:0/96
  config = {};
  config.address = ip("10.0.0.1");
  config.gateway = ip("10.0.0.2");
  const Routes four(config, kOurMac);
  EXPECT_FALSE(four.next_hop(ip("fd00::1")));
  EXPECT_FALSE(four.has_ipv6());
  EXPECT_FALSE(four.is_our_group(kAllNodes));
}

TEST(Routes, GroupsOfOurAddresses) {
  const Routes routes(many(), kOurMac);
  EXPECT_TRUE(routes.is_our_group(ip("ff02::1")));
  EXPECT_TRUE(routes.is_our_group(ip("ff02::1:ff00:1")));
  EXPECT_TRUE(routes.is_our_group(ip("ff02::1:ff00:5")));
  EXPECT_TRUE(routes.is_our_group(solicited_node(kOurLinkLocal)));
  EXPECT_FALSE(routes.is_our_group(ip("ff02::1:ff00:2")));
  EXPECT_FALSE(routes.is_our_group(ip("ff02::2")));
}

TEST(Routes, AConfiguredLinkLocalAddressIsTheOnlyOne) {
  Config config = many();
  config.addresses.push_back({ip("fe80::77"), 64});
  const Routes routes(config, kOurMac);
  EXPECT_FALSE(routes.is_ours(kOurLinkLocal));
  EXPECT_EQ(to_string(routes.source_for(ip("fe80::7"))), "fe80::77");
}

TEST(Routes, LinkLocalAddressesComeFromTheMac) {
  EXPECT_EQ(to_string(link_local_address({0x00, 0x11, 0x22, 0x33, 0x44, 0x55})),
            "fe80::211:22ff:fe33:4455");
}

// Of two ways of one length the one that was named first is taken: an address's own network is
// reached over the link, and the gateway is the first of the default routes.
TEST(Routes, TheFirstOfEqualPrefixesWins) {
  Config config = many();
  config.routes = {{{ip("10.0.0.0"), 24}, ip("192.168.1.2")},
                   {{ip("0.0.0.0"), 0}, ip("192.168.1.2")},
                   {{ip("10.7.0.0"), 16}, ip("10.0.0.2")},
                   {{ip("10.7.0.0"), 16}, ip("10.0.0.3")}};
  const Routes routes(config, kOurMac);
  EXPECT_EQ(routes.next_hop(ip("10.0.0.77")), ip("10.0.0.77"));
  EXPECT_EQ(routes.next_hop(ip("8.8.8.8")), ip("10.0.0.254"));
  EXPECT_EQ(routes.next_hop(ip("10.7.1.1")), ip("10.0.0.2"));
}

TEST(Routes, MoreThanTheLimitIsOurBug) {
  Config config = many();
  config.routes.resize(Config::kMaxRoutes + 1, config.routes[0]);
  EXPECT_DEATH(Routes(config, kOurMac), "");
}

}  // namespace
}  // namespace rnic::net

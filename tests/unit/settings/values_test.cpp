// Values of the configuration by themselves: what a text means, and how a value is written back.

#include "settings/values.hpp"

#include <gtest/gtest.h>

#include "settings/checks.hpp"

namespace rnic::settings {
namespace {

/// What is stored for `text`, written back as the file has it; or what is wrong with it.
std::string back(const Target& target, std::string_view text) {
  if (const auto wrong = assign(target, {}, raw_from_text(target, text))) return *wrong;
  return value_text(target, {});
}

TEST(SettingsValues, AreWrittenBackAsTheFileHasThem) {
  std::string name;
  EXPECT_EQ(back(&name, "net_tap0,iface=a"), "\"net_tap0,iface=a\"");
  EXPECT_EQ(name, "net_tap0,iface=a");
  Mac mac{};
  EXPECT_EQ(back(&mac, "02:aB:00:00:00:1f"), "\"02:ab:00:00:00:1f\"");
  EXPECT_EQ(mac, (Mac{2, 0xab, 0, 0, 0, 0x1f}));
  IpAddress address;
  uint8_t length = 0;
  EXPECT_EQ(back(InterfaceAddress{&address, &length}, "10.0.0.7/20"), "\"10.0.0.7/20\"");
  EXPECT_EQ(address, IpAddress::v4(0x0a000007));
  EXPECT_EQ(length, 20);
  EXPECT_EQ(back(&address, "fd00::1"), "\"fd00::1\"");
}

TEST(SettingsValues, ListsAreWrittenBackElementByElement) {
  std::vector<std::string> words;
  EXPECT_EQ(back(&words, "[a, \"b,c\"]"), "[\"a\", \"b,c\"]");
  std::vector<net::Prefix> prefixes;
  EXPECT_EQ(back(&prefixes, "[10.0.0.1/24, fd00::1/64]"), "[\"10.0.0.1/24\", \"fd00::1/64\"]");
  std::vector<net::StaticRoute> routes;
  EXPECT_EQ(back(&routes, "[\"10.1.0.0/16 via 10.0.0.254\", fd01::/48 via fd00::fe]"),
            "[\"10.1.0.0/16 via 10.0.0.254\", \"fd01::/48 via fd00::fe\"]");
  ASSERT_EQ(routes.size(), 2u);
  EXPECT_EQ(routes[0].to.address, IpAddress::v4(0x0a010000));
  EXPECT_EQ(routes[0].to.length, 16);
  EXPECT_EQ(routes[0].gateway, IpAddress::v4(0x0a0000fe));
}

TEST(SettingsValues, AListOfOneNeedsNoBrackets) {
  std::vector<uint32_t> numbers;
  EXPECT_EQ(assign(&numbers, {{0, 9}}, raw_from_text(&numbers, " 7 ")), std::nullopt);
  EXPECT_EQ(numbers, std::vector<uint32_t>{7});
  std::vector<std::string> words;
  for (const char* text : {"one,two", "\"one,two\""}) {
    EXPECT_EQ(back(&words, text), "[\"one,two\"]") << text;
  }
  for (const char* text : {"[", "]", "[1", "1]"}) {
    EXPECT_EQ(back(&words, text), "[\"" + std::string(text) + "\"]") << "no list";
  }
}

TEST(SettingsValues, WhatIsNoRoute) {
  std::vector<net::StaticRoute> routes;
  for (const char* text : {"", "10.1.0.0/16", "10.1.0.0/16 via", "10.1.0.0 via 10.0.0.1",
                           "10.1.0.0/16 via here", "10.1.0.0/33 via 10.0.0.1"}) {
    EXPECT_EQ(assign(&routes, {}, {std::vector<Raw>{{std::string(text)}}}),
              "\"" + std::string(text) + "\" is not a route: write \"10.1.0.0/16 via 10.0.0.254\"");
  }
  EXPECT_EQ(assign(&routes, {}, {std::vector<Raw>{{int64_t{3}}}}),
            "3 is not a route: write \"10.1.0.0/16 via 10.0.0.254\"");
  EXPECT_TRUE(routes.empty()) << "a wrong one is not stored";
}

TEST(SettingsValues, RangesThatOnlyProseCanSay) {
  EXPECT_EQ(range_text(static_cast<std::string*>(nullptr), {}), "");
  EXPECT_EQ(range_text(static_cast<std::vector<std::string>*>(nullptr), {}), "");
  EXPECT_EQ(range_text(InterfaceAddress{}, {}), "address / prefix length");
}

// The ranges of the keys let no such value through: whoever fills the structs himself is told.
TEST(SettingsValues, DamageThatNoKeyAllowsIsFoundByTheRules) {
  auto settings = parse_settings(loopback_toml(), "t.toml");
  ASSERT_TRUE(settings);
  settings->devices[1].impair.config.drop = 2;
  Findings findings;
  check(*settings, Places("t.toml"), findings);
  EXPECT_NE(findings.error().message.find(
                "t.toml: device.rnic1.impair: impair.drop is 2.000000: a probability from 0 to 1"),
            std::string::npos)
      << findings.error().message;
}

}  // namespace
}  // namespace rnic::settings

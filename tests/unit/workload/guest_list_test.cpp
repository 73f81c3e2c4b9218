// The choice of the guest that gives way to a newcomer, and of those that have been silent for too
// long.

#include "workload/guest_list.hpp"

#include <gtest/gtest.h>

namespace rnic::workload {
namespace {

constexpr int64_t kSecond = 1'000'000'000;

TEST(HostOf, AnAddressAndOfIPv6ItsNetwork) {
  EXPECT_EQ(host_of("10.0.0.2:7471"), "10.0.0.2");
  EXPECT_EQ(host_of("[2001:db8:0:7::1]:80"), "2001:db8:0:7::/64");
  EXPECT_EQ(host_of("[2001:db8:0:7:1:2:3:4]:81"), host_of("[2001:db8:0:7::1]:80"));
  EXPECT_NE(host_of("[2001:db8:0:8::1]:80"), host_of("[2001:db8:0:7::1]:80"));
}

TEST(GuestList, WhoHasNeverSpokenGoesFirst) {
  GuestList list({.most = 3});
  for (uint32_t id : {1u, 2u, 3u}) list.enter(id, "10.0.0." + std::to_string(id) + ":1", id);
  EXPECT_TRUE(list.full());
  EXPECT_EQ(list.gives_way("10.0.0.9:1", 10), 1u);
  list.heard(1, 5);
  EXPECT_EQ(list.gives_way("10.0.0.9:1", 10), 2u);
  list.leave(2);
  EXPECT_FALSE(list.full());
  EXPECT_EQ(list.gives_way("10.0.0.9:1", 10), 3u);
}

TEST(GuestList, WhoSpeaksStaysUntilTheGraceIsOver) {
  GuestList list({.most = 2, .grace_ns = kSecond});
  list.enter(1, "10.0.0.1:1", 0);
  list.enter(2, "10.0.0.2:1", 0);
  list.heard(1, kSecond);
  list.heard(2, 2 * kSecond);
  EXPECT_EQ(list.gives_way("10.0.0.9:1", 2 * kSecond), std::nullopt);
  EXPECT_EQ(list.gives_way("10.0.0.9:1", 2 * kSecond + 1), 1u);
}

TEST(GuestList, TheHostThatHasMostPays) {
  GuestList list({.most = 4});
  list.enter(1, "10.0.0.1:1", 1);
  list.enter(2, "10.0.0.2:1", 2);
  list.enter(3, "10.0.0.2:2", 3);
  EXPECT_EQ(list.gives_way("10.0.0.9:1", 10), 2u);
  EXPECT_EQ(list.gives_way("10.0.0.1:9", 10), 1u) << "as many with the newcomer, and older";
  list.heard(2, 5);
  EXPECT_EQ(list.gives_way("10.0.0.9:1", 10), 1u) << "of the silent ones each host has one";
}

TEST(GuestList, SilenceHasAnEnd) {
  GuestList list({.most = 4, .silence_ns = kSecond});
  list.enter(1, "10.0.0.1:1", 0);
  list.enter(2, "10.0.0.1:2", 5);
  EXPECT_EQ(list.too_silent(kSecond), std::nullopt);
  EXPECT_EQ(list.too_silent(kSecond + 1), 1u);
  list.heard(1, kSecond);
  EXPECT_EQ(list.too_silent(kSecond + 6), 2u);
  EXPECT_EQ(GuestList({.most = 4}).too_silent(INT64_MAX), std::nullopt);
  GuestList patient({.most = 4});
  patient.enter(1, "10.0.0.1:1", 0);
  EXPECT_EQ(patient.too_silent(INT64_MAX), std::nullopt);
}

}  // namespace
}  // namespace rnic::workload

// Fragments through librte_ip_frag; the EAL is started by main() in dpdk_test.cpp.
#include "dpdk/reassembler.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <numeric>
#include <vector>

namespace rnic::dpdk {
namespace {

using Outcome = net::Reassembler::Outcome;
using Octets = std::vector<uint8_t>;

constexpr base::Now kArrival = base::from_nanos(1'000'000'000);

Octets content(uint32_t size) {
  Octets all(size);
  std::iota(all.begin(), all.end(), uint8_t{3});
  return all;
}

std::unique_ptr<net::Reassembler> make(uint32_t datagrams, uint32_t mtu = 1500) {
  auto made = make_reassembler({datagrams, mtu, std::chrono::seconds(60)});
  EXPECT_TRUE(made) << made.error().message;
  return made ? std::move(*made) : nullptr;
}

net::Reassembler::Result add(net::Reassembler& r, uint32_t number, const Octets& all,
                             uint32_t first, uint32_t end) {
  return r.add(number, first, end < all.size(), base::ByteView(all).subspan(first, end - first),
               kArrival);
}

// TCP-IP-01
TEST(IpFragReassembler, EveryOrderOfFiveIsJoined) {
  auto r = make(4);
  const Octets all = content(3001);
  std::vector<uint32_t> order{0, 1, 2, 3, 4};
  uint32_t number = 1;
  do {
    ++number;
    for (size_t i = 0; i < order.size(); ++i) {
      const uint32_t first = order[i] * 640;
      const auto result = add(*r, number, all, first, std::min(first + 640, 3001u));
      ASSERT_EQ(result.outcome, i == 4 ? Outcome::Complete : Outcome::Kept);
      if (i == 4) {
        ASSERT_TRUE(
            std::equal(all.begin(), all.end(), result.payload.begin(), result.payload.end()));
      }
    }
  } while (std::next_permutation(order.begin(), order.end()));
}

TEST(IpFragReassembler, EightFragmentsAreTheMost) {
  auto r = make(2);
  const Octets all = content(8 * 1480);
  for (uint32_t i = 0; i < 8; ++i) {
    const auto result = add(*r, 7, all, i * 1480, (i + 1) * 1480);
    EXPECT_EQ(result.outcome, i == 7 ? Outcome::Complete : Outcome::Kept);
  }
}

TEST(IpFragReassembler, ForgottenDatagramsGiveTheirPlacesBack) {
  auto r = make(4);
  const Octets all = content(800);
  for (uint32_t number = 1; number < 20'000; ++number) {
    // With the first, a middle or the last fragment, or two of them.
    const uint32_t which = number % 4;
    const uint32_t first = which == 1 ? 400 : 0;
    EXPECT_EQ(add(*r, number, all, first, first + 400).outcome, Outcome::Kept);
    if (which == 2) {
      EXPECT_EQ(add(*r, number, all, 400, 480).outcome, Outcome::Kept);
    }
    r->forget(number, kArrival);
  }
  EXPECT_EQ(add(*r, 30'000, all, 0, 400).outcome, Outcome::Kept);
  EXPECT_EQ(add(*r, 30'000, all, 400, 800).outcome, Outcome::Complete);
}

TEST(IpFragReassembler, AsManyDatagramsAsAskedFor) {
  for (const uint32_t datagrams : {1u, 64u, 1024u}) {
    auto r = make(datagrams);
    const Octets all = content(640);
    for (uint32_t number = 1; number <= datagrams; ++number) {
      for (uint32_t at = 0; at < 560; at += 80) {
        ASSERT_EQ(add(*r, number, all, at, at + 80).outcome, Outcome::Kept);
      }
    }
    for (uint32_t number = 1; number <= datagrams; ++number) {
      ASSERT_EQ(add(*r, number, all, 560, 640).outcome, Outcome::Complete) << number;
    }
  }
}

TEST(IpFragReassembler, WhatIsTooLongIsRefused) {
  auto r = make(4, 576);
  const Octets all = content(2000);
  EXPECT_EQ(add(*r, 1, all, 0, 1600).outcome, Outcome::Refused);
  EXPECT_EQ(r->add(2, net::Reassembler::kMaxOctets - 8, false, content(16), kArrival).outcome,
            Outcome::Refused);
}

TEST(IpFragReassembler, ImpossibleLimitsAreNamed) {
  const auto none = make_reassembler({0, 1500, std::chrono::seconds(1)});
  ASSERT_FALSE(none);
  EXPECT_NE(none.error().message.find("1 to 1024"), std::string::npos);
}

}  // namespace
}  // namespace rnic::dpdk

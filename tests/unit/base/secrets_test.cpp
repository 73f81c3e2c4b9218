#include <gtest/gtest.h>

#include <set>
#include <vector>

#include "base/secret_permutation.hpp"
#include "base/siphash.hpp"

namespace rnic::base {
namespace {

constexpr Secret kReference{0x0706050403020100, 0x0f0e0d0c0b0a0908};

// The vectors of the paper's reference code: key 00 .. 0f, input 00 .. 07 and nothing.
TEST(SipHash, IsTheReference) {
  SipHash eight(kReference);
  eight.add(0x0706050403020100);
  EXPECT_EQ(eight.finish(), 0x93f5f5799a932462u);
  EXPECT_EQ(SipHash(kReference).finish(), 0x726fdb47dd0e0e31u);
}

TEST(SecretSource, FollowsItsSecretAndItsPurposeOnly) {
  SecretSource a(kReference, 1);
  SecretSource same(kReference, 1);
  SecretSource other_purpose(kReference, 2);
  SecretSource other_secret({kReference[0], kReference[1] ^ 1}, 1);
  std::set<uint64_t> seen;
  for (int i = 0; i < 1000; ++i) {
    const uint64_t value = a.next();
    EXPECT_EQ(value, same.next());
    seen.insert({value, other_purpose.next(), other_secret.next()});
    EXPECT_LT(a.below(7), 7u);
    static_cast<void>(same.below(7));
  }
  EXPECT_EQ(seen.size(), 3000u);
}

TEST(SecretPermutation, GivesEachPlaceOnce) {
  for (const uint32_t size : {1u, 2u, 3u, 4u, 5u, 63u, 64u, 65u, 1000u}) {
    const SecretPermutation order(kReference, 1, size);
    std::vector<bool> seen(size);
    for (uint32_t i = 0; i < size; ++i) {
      const uint32_t at = order.at(i);
      ASSERT_LT(at, size);
      ASSERT_FALSE(seen[at]) << size << " " << i;
      seen[at] = true;
    }
  }
}

TEST(SecretPermutation, LeansNowhere) {
  constexpr uint32_t kSize = 1000;
  constexpr uint64_t kSecrets = 4000;
  std::vector<uint32_t> first(10);
  uint32_t neighbours = 0;
  for (uint64_t i = 0; i < kSecrets; ++i) {
    const SecretPermutation order({i, ~i}, 1, kSize);
    ++first[order.at(0) / 100];
    neighbours += order.at(1) == order.at(0) + 1 ? 1 : 0;
  }
  for (const uint32_t n : first) EXPECT_NEAR(n, kSecrets / 10, 120);  // six standard deviations
  EXPECT_LT(neighbours, 20u);                                         // 4 are to be expected
}

}  // namespace
}  // namespace rnic::base

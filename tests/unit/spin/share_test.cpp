#include "rnic-spin/share.hpp"

#include <gtest/gtest.h>

namespace rnic::spin {
namespace {

constexpr ResourceCounts kQuotas{.pds = 2,
                                 .regions = 3,
                                 .registered_octets = 100,
                                 .pieces = 6,
                                 .cqs = kNoQuota,
                                 .cq_entries = kNoQuota,
                                 .srqs = 1,
                                 .qps = 1,
                                 .reads = 8,
                                 .listeners = 1,
                                 .requests = 1};

class ShareTest : public ::testing::Test {
 protected:
  /// What a device would say that has counted as the share has.
  ConsumerInfo told() const { return {"one", kQuotas, share_.used(), 0}; }

  Share share_{"one", kQuotas};
};

TEST_F(ShareTest, AQuotaIsReachedAndNotPassed) {
  EXPECT_EQ(share_.lacking({.pds = 2}), std::nullopt);
  share_.take({.pds = 1});
  EXPECT_EQ(share_.lacking({.pds = 1}), std::nullopt);
  EXPECT_EQ(share_.lacking({.pds = 2}), "quotas.pds");
  share_.give_back({.pds = 1});
  EXPECT_EQ(share_.lacking({.pds = 2}), std::nullopt);
}

TEST_F(ShareTest, TheFirstQuotaThatLacksIsNamed) {
  EXPECT_EQ(share_.lacking({.regions = 1, .registered_octets = 101}), "quotas.registered_octets");
  EXPECT_EQ(share_.lacking({.regions = 4, .registered_octets = 101}), "quotas.regions");
  EXPECT_EQ(share_.lacking({.regions = 3, .pieces = 7}), "quotas.pieces");
}

TEST_F(ShareTest, WithoutAQuotaThereIsNoEnd) {
  share_.take({.cq_entries = UINT64_MAX / 2});
  EXPECT_EQ(share_.lacking({.cq_entries = UINT64_MAX / 2}), std::nullopt);
}

TEST_F(ShareTest, WhatADeviceSaysRightlyIsRight) {
  share_.take({.pds = 1, .regions = 2, .registered_octets = 7});
  EXPECT_EQ(share_.check(told(), false), std::nullopt);
}

TEST_F(ShareTest, EachThingThatADeviceSaysWronglyShows) {
  share_.take({.qps = 1});
  for (const auto amount : {&ResourceCounts::pds, &ResourceCounts::listeners}) {
    ConsumerInfo wrong = told();
    ++(wrong.used.*amount);
    EXPECT_TRUE(share_.check(wrong, false));
  }
  ConsumerInfo other_quotas = told();
  ++other_quotas.quotas.pds;
  EXPECT_TRUE(share_.check(other_quotas, false));
  ConsumerInfo other_name = told();
  other_name.name = "two";
  EXPECT_TRUE(share_.check(other_name, false));
}

TEST_F(ShareTest, RequestsComeByThemselvesWhereItListens) {
  ConsumerInfo asked = told();
  asked.used.requests = 1;
  EXPECT_TRUE(share_.check(asked, false));
  EXPECT_FALSE(share_.check(asked, true));
  asked.used.requests = 2;  // beyond its quota
  EXPECT_TRUE(share_.check(asked, true));
}

TEST_F(ShareTest, RefusalsAreCounted) {
  share_.count_refusal();
  ConsumerInfo info = told();
  EXPECT_TRUE(share_.check(info, false));
  EXPECT_TRUE(share_.check(info, true));
  info.refused = 1;
  EXPECT_FALSE(share_.check(info, false));
  info.refused = 2;  // a request of a peer, perhaps
  EXPECT_TRUE(share_.check(info, false));
  EXPECT_FALSE(share_.check(info, true));
}

}  // namespace
}  // namespace rnic::spin

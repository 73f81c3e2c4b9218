// Queue 1 and what waits for a response: how many requests there may be at once.

#include "rdmap/requests.hpp"

#include <gtest/gtest.h>

#include <algorithm>

namespace rnic::rdmap {
namespace {

// A start-up that agrees on more than the queue pair was made with gets what it was made with, also
// where the ring behind it has more places, since their number is a power of two.
TEST(InboundRequests, AnAgreementLowersTheLimitAndNeverRaisesIt) {
  for (uint32_t ird = 0; ird <= 17; ++ird) {
    for (uint32_t agreed = 0; agreed <= 40; ++agreed) {
      SCOPED_TRACE(testing::Message() << ird << " agreed " << agreed);
      InboundRequests requests(ird);
      requests.set_limit(agreed);
      EXPECT_EQ(requests.provide(), std::min(agreed, std::max(ird, 1u)));
      EXPECT_EQ(requests.provide(), 0u);
    }
  }
}

TEST(InboundRequests, WithoutAnAgreementTheLimitIsTheQueuePairs) {
  for (uint32_t ird = 0; ird <= 17; ++ird) EXPECT_EQ(InboundRequests(ird).provide(), ird);
}

}  // namespace
}  // namespace rnic::rdmap

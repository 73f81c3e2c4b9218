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
      SCOPED_TRACE(::testing::Message() << ird << " agreed " << agreed);
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

TEST(InboundRequests, NoSlotIsKeptForNothing) {
  InboundRequests requests(2);
  requests.validate();
  EXPECT_EQ(requests.provide(), 2u);
  requests.deliver({}, false);
  requests.validate();
  requests.served();
  requests.validate();
  EXPECT_TRUE(requests.holds(0));
  requests.release(0);
  requests.validate();
  EXPECT_FALSE(requests.holds(0));
  requests.served();
  EXPECT_DEATH(requests.validate(), "serve_") << "of what was not delivered";
}

TEST(InboundRequests, OneThatIsNotDueYetKeepsThoseBehindItWaiting) {
  InboundRequests requests(4);
  EXPECT_EQ(requests.provide(), 4u);
  const auto at = [](int64_t time) { return base::from_nanos(time); };
  EXPECT_EQ(requests.next_due(), base::kNever);
  requests.deliver({}, false, at(10), at(10));
  EXPECT_TRUE(requests.has_ready());
  requests.deliver({}, false, at(50), at(11));
  requests.deliver({}, false, at(12), at(12));
  EXPECT_EQ(requests.next_due(), at(50));
  EXPECT_EQ(requests.end_of_ready(), 1u);
  requests.served();
  EXPECT_FALSE(requests.has_ready());
  EXPECT_TRUE(requests.has_unanswered());
  requests.allow(at(49));
  EXPECT_FALSE(requests.has_ready());
  requests.allow(at(50));
  EXPECT_EQ(requests.end_of_ready(), 3u);
  EXPECT_EQ(requests.next_due(), base::kNever);
  EXPECT_EQ(requests.delivered(), 3u);
  requests.validate();
}

// RFC 7306 s.5.3: an atomic that is asked for once is carried out once.
TEST(InboundRequests, AnAtomicIsExecutedOnce) {
  InboundRequests requests(1);
  EXPECT_EQ(requests.provide(), 1u);
  requests.deliver({}, true);
  requests.execute(0, 7, 1);
  EXPECT_EQ(requests.at(0).original, 7u);
  EXPECT_DEATH(requests.execute(0, 8, 2), "executed");
}

TEST(OutboundRequests, OnlyTheOldestHasBegun) {
  OutboundRequests requests(2, 1);
  requests.push({.length = 10});
  requests.validate();
  OutboundRequest begun{.length = 10};
  begun.coverage.add(0, 4, 1);
  requests.push(begun);
  EXPECT_DEATH(requests.validate(), "coverage");
  requests.pop();
  requests.validate();
  begun.length = 3;
  requests.pop();
  requests.push(begun);
  EXPECT_DEATH(requests.validate(), "length");
}

}  // namespace
}  // namespace rnic::rdmap

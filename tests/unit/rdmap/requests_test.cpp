// Queue 1 and what waits for a response: how many requests there may be at once.

#include "rdmap/requests.hpp"

#include <gtest/gtest.h>

#include <algorithm>

namespace rnic::rdmap {
namespace {

// A start-up that agrees on more than the queue pair was made with gets what it was made with, also
// where the ring behind it has more places, since their number is a power of two.
TEST(InboundRequests, AnAgreementLowersTheLimitAndNeverRaisesIt) {
  RequestStore store;
  for (uint32_t ird = 0; ird <= 17; ++ird) {
    for (uint32_t agreed = 0; agreed <= 40; ++agreed) {
      SCOPED_TRACE(::testing::Message() << ird << " agreed " << agreed);
      InboundRequests requests(ird, store.inbound);
      requests.set_limit(agreed);
      EXPECT_EQ(requests.provide(), std::min(agreed, std::max(ird, 1u)));
      EXPECT_EQ(requests.provide(), 0u);
    }
  }
}

TEST(InboundRequests, WithoutAnAgreementTheLimitIsTheQueuePairs) {
  RequestStore store;
  for (uint32_t ird = 0; ird <= 17; ++ird) {
    EXPECT_EQ(InboundRequests(ird, store.inbound).provide(), ird);
  }
}

TEST(InboundRequests, NoSlotIsKeptForNothing) {
  RequestStore store;
  InboundRequests requests(2, store.inbound);
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
  RequestStore store;
  InboundRequests requests(4, store.inbound);
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
  RequestStore store;
  InboundRequests requests(1, store.inbound);
  EXPECT_EQ(requests.provide(), 1u);
  requests.deliver({}, true);
  requests.execute(0, 7, 1);
  EXPECT_EQ(requests.at(0).original, 7u);
  EXPECT_DEATH(requests.execute(0, 8, 2), "executed");
}

// A queue pair that has buffers for Reads, and of whose peer none has come, takes no memory for
// them; neither does one whose Reads have all been answered and acknowledged.
TEST(InboundRequests, TheRingIsTakenFromTheFirstOctetToTheLastAcknowledgement) {
  RequestStore store;
  const Ring<InboundRequest> another = store.inbound.promise(4);
  const RingPool<InboundRequest>& pool = store.inbound.pool(4);
  {
    InboundRequests requests(2, store.inbound);
    EXPECT_EQ(requests.provide(), 2u);
    EXPECT_EQ(pool.taken(), 0u);
    // The second request comes ahead of the first.
    requests.buffer(2)[0] = 7;
    EXPECT_EQ(pool.taken(), 1u);
    requests.buffer(1)[0] = 6;
    requests.deliver({}, false);
    requests.served();
    requests.release(0);
    requests.validate();
    EXPECT_EQ(pool.taken(), 1u) << "the second one has begun";
    EXPECT_EQ(requests.read_header(2)[0], 7);
    requests.deliver({}, false);
    requests.served();
    EXPECT_EQ(pool.taken(), 1u) << "its response may have to be sent again";
    requests.release(1);
    requests.validate();
    EXPECT_EQ(pool.taken(), 0u);
    EXPECT_EQ(requests.provide(), 2u);
    static_cast<void>(requests.buffer(3));
    EXPECT_EQ(pool.taken(), 1u);
  }
  EXPECT_EQ(pool.taken(), 0u) << "the endpoint has ended";
  EXPECT_EQ(pool.promised(), 1u);
  EXPECT_EQ(pool.touched(), 1u);
  store.validate();
}

// The ring of another queue pair was taken, with its requests in it: nothing of them is seen.
TEST(InboundRequests, ARequestOfWhichNothingHasComeIsZero) {
  RequestStore store;
  {
    InboundRequests former(2, store.inbound);
    former.provide();
    for (uint8_t& octet : former.buffer(1)) octet = 0xff;
    for (uint8_t& octet : former.buffer(2)) octet = 0xff;
  }
  const auto is_zero = [](base::ByteView octets) {
    return std::ranges::all_of(octets, [](uint8_t octet) { return octet == 0; });
  };
  InboundRequests requests(2, store.inbound);
  EXPECT_TRUE(requests.read_header(1).empty());
  requests.provide();
  EXPECT_EQ(requests.read_header(1).size(), wire::kRdmapReadRequestSize);
  EXPECT_TRUE(is_zero(requests.read_header(1)));
  EXPECT_TRUE(is_zero(requests.buffer(2)));
  EXPECT_TRUE(is_zero(requests.read_header(1)));
  EXPECT_TRUE(is_zero(requests.buffer(1)));
  EXPECT_TRUE(requests.read_header(3).empty());
}

TEST(OutboundRequests, TheRingIsTakenWhileAnyRequestIsOutstanding) {
  RequestStore store;
  OutboundRequests requests(2, 1, store.outbound);
  const RingPool<OutboundSlot>& pool = store.outbound.pool(2);
  for (int round = 0; round < 5; ++round) {
    EXPECT_EQ(pool.taken(), 0u);
    requests.push({.length = 1});
    requests.push({.length = 2});
    requests.validate();
    EXPECT_EQ(pool.taken(), 1u);
    requests.pop();
    EXPECT_EQ(pool.taken(), 1u);
    round % 2 == 0 ? requests.pop() : requests.clear();
    requests.validate();
    requests.clear();
  }
  EXPECT_EQ(pool.taken(), 0u);
  EXPECT_EQ(pool.touched(), 1u);
  store.validate();
}

TEST(OutboundRequests, OnlyTheOldestHasBegun) {
  RequestStore store;
  OutboundRequests requests(2, 1, store.outbound);
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

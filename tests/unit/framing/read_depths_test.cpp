// How two ends agree on the depths of their Read queues, whatever frame carries them.
#include "framing/read_depths.hpp"

#include <gtest/gtest.h>

namespace rnic::framing {
namespace {

constexpr uint16_t kApplication = kReadsByApplication;

// RFC 6581 s.9.1: neither end has more Reads under way than the other one takes, for every pair of
// options, and an initiator that could not take what the responder sends says so.
TEST(ReadDepths, NeitherEndExceedsTheOther_CM6581_9_1_01) {
  for (const uint16_t ird_a : {0, 1, 5, 200}) {
    for (const uint16_t ord_a : {0, 1, 5, 200}) {
      for (const uint16_t ird_b : {0, 1, 5, 200}) {
        for (const uint16_t ord_b : {0, 1, 5, 200}) {
          const StartOptions a{.exchange_reads = true, .ird = ird_a, .ord = ord_a};
          const StartOptions b{.ird = ird_b, .ord = ord_b};
          const ReadDepths asked = depths_of_request(a);
          const AnsweredReads answer =
              answer_reads(b, {.enhanced = true, .ird = asked.ird, .ord = asked.ord});
          const TakenReads taken =
              take_reads(a, {.enhanced = true, .ird = answer.told.ird, .ord = answer.told.ord});
          ASSERT_EQ(taken.error, llp::FramingError::None);
          EXPECT_LE(taken.agreed.ord.value(), answer.agreed.ird.value());
          EXPECT_LE(answer.agreed.ord.value(), taken.agreed.ird.value());
          EXPECT_LE(asked.ord, kReadsLimit) << "BUG-19";
        }
      }
    }
  }
}

TEST(ReadDepths, WhatIsLeftToTheApplicationIsMirrored_CM6581_9_1_07) {
  const ReadDepths asked = depths_of_request({});
  EXPECT_EQ(asked.ird, kApplication);
  EXPECT_EQ(asked.ord, kApplication);
  const AnsweredReads answer =
      answer_reads({.ird = 3, .ord = 4}, {.enhanced = true, .ird = asked.ird, .ord = asked.ord});
  EXPECT_EQ(answer.told.ird, kApplication);
  EXPECT_EQ(answer.told.ord, kApplication);
  EXPECT_FALSE(answer.agreed.ird || answer.agreed.ord);
  EXPECT_TRUE(answer.suffice);
}

// RFC 6581 s.9.1: a responder that needs more than the initiator takes tells how much.
TEST(ReadDepths, TooFewAreRefusedWithTheNumber) {
  const AnsweredReads answer =
      answer_reads({.ird = 2, .ord = 9, .ord_required = 7}, {.enhanced = true, .ird = 6, .ord = 1});
  EXPECT_FALSE(answer.suffice);
  EXPECT_EQ(answer.told.ord, 7);
  const TakenReads taken = take_reads({.ird = 6, .ord = 1}, {.enhanced = true, .ird = 2, .ord = 7});
  EXPECT_EQ(taken.error, llp::FramingError::InsufficientIrd);
}

}  // namespace
}  // namespace rnic::framing

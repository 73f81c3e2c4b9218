// What the owner is told of posted work, and when.

#include "rdmap/completions.hpp"

#include <vector>

#include "rdmap/requests.hpp"
#include "two_nodes.hpp"

namespace rnic::rdmap {
namespace {

class CompletionsTest : public ::testing::Test {
 protected:
  void post(uint64_t id, bool signaled = true) {
    sends_.post({.id = id, .opcode = Opcode::Write, .signaled = signaled}, work_row(Opcode::Write));
  }
  uint32_t accept(uint64_t id, bool signaled = true) {
    post(id, signaled);
    return sends_.accept();
  }

  SendQueue sends_{4};
  ReceiveQueue receives_{4};
  Counters counters_;
  RecordingOwner owner_;
  RequestStore requests_;
  Completions completions_{9, {sends_, receives_, requests_}, counters_, owner_};
};

// RFC 5040 s.5.5(15)
TEST_F(CompletionsTest, SendsCompleteInTheOrderOfTheirPosts) {
  const uint32_t first = accept(1);
  const uint32_t second = accept(2);
  const uint32_t third = accept(3, false);
  const uint32_t fourth = accept(4);
  sends_.release(second);
  sends_.release(third);
  completions_.complete_sends();
  EXPECT_EQ(owner_.send_ids(), (std::vector<uint64_t>{}));
  sends_.release(first);
  completions_.complete_sends();
  EXPECT_EQ(owner_.send_ids(), (std::vector<uint64_t>{1, 2})) << "the third is not signaled";
  sends_.fail(fourth, CompletionStatus::LocalLength);
  completions_.complete_sends();
  EXPECT_EQ(owner_.send_ids(), (std::vector<uint64_t>{1, 2, 4}));
  EXPECT_EQ(owner_.sends[2].status, CompletionStatus::LocalLength);
  EXPECT_EQ(owner_.sends[2].qp, 9u);
}

// An error is told of work that asked for no completion, too.
TEST_F(CompletionsTest, WhatFailsIsToldUnasked) {
  sends_.fail(accept(1, false), CompletionStatus::LocalProtection);
  completions_.complete_sends();
  ASSERT_EQ(owner_.sends.size(), 1u);
  EXPECT_EQ(owner_.sends[0].status, CompletionStatus::LocalProtection);
}

// Within the call of each completion its place is there for another request, also while all are
// flushed, and what is posted from there is flushed by the same call, once.
TEST_F(CompletionsTest, AFlushReachesWhatIsPostedMeanwhile_BUG_06) {
  for (uint64_t id = 1; id <= 4; ++id) accept(id);
  receives_.post({.id = 11});
  receives_.accept();
  uint64_t next = 5;
  owner_.on_send = [&] {
    EXPECT_TRUE(completions_.is_flushing());
    EXPECT_TRUE(sends_.has_room());
    if (next <= 20) post(next++);
    completions_.flush();  // which the one at work does
  };
  owner_.on_receive = [&] {
    if (owner_.receives.size() < 3) receives_.post({.id = 11 + owner_.receives.size()});
  };
  completions_.flush();
  EXPECT_FALSE(completions_.is_flushing());
  ASSERT_EQ(owner_.sends.size(), 20u);
  for (uint64_t id = 1; id <= 20; ++id) {
    EXPECT_EQ(owner_.sends[id - 1].id, id);
    EXPECT_EQ(owner_.sends[id - 1].status, CompletionStatus::Flushed);
  }
  ASSERT_EQ(owner_.receives.size(), 3u);
  EXPECT_EQ(owner_.receives[2].id, 13u);
  EXPECT_EQ(counters_.flushed, 23u);
}

// What is known of a request is not lost by a flush.
TEST_F(CompletionsTest, AFlushKeepsACauseThatIsKnown) {
  sends_.fail(accept(1), CompletionStatus::RemoteAccess);
  accept(2);
  receives_.post({.id = 3});
  receives_.accept();
  receives_.refuse(1);
  completions_.flush();
  ASSERT_EQ(owner_.sends.size(), 2u);
  EXPECT_EQ(owner_.sends[0].status, CompletionStatus::RemoteAccess);
  EXPECT_EQ(owner_.sends[1].status, CompletionStatus::Flushed);
  ASSERT_EQ(owner_.receives.size(), 1u);
  EXPECT_EQ(owner_.receives[0].status, CompletionStatus::LocalProtection);
}

TEST_F(CompletionsTest, AQueueKeepsNoSlotForNothing) {
  sends_.start(accept(1));
  accept(2);
  sends_.validate();
  receives_.validate();
  EXPECT_DEATH(
      {
        sends_.start(1);
        sends_.validate();
      },
      "started")
      << "behind the slot whose turn it is";
  sends_.advance();
  sends_.retire();  // it was told of, and may be asked for again
  sends_.validate();
  EXPECT_TRUE(sends_.holds(0));
  sends_.release(0);
  sends_.validate();
  EXPECT_FALSE(sends_.holds(0));
  receives_.post({.id = 11});
  receives_.accept();
  receives_.validate();
  receives_.pop();
  receives_.validate();
}

}  // namespace
}  // namespace rnic::rdmap

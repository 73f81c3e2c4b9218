#include "rnic-spin/life.hpp"

#include <gtest/gtest.h>

namespace rnic::spin {
namespace {

Completion of(uint64_t id, CompletionStatus status = CompletionStatus::Success) {
  return {.id = id, .status = status};
}

class OutstandingTest : public ::testing::Test {
 protected:
  OutstandingTest() {
    for (uint64_t id = 1; id <= 4; ++id) {
      queue_.post({.id = id, .signaled = id != 2 && id != 4, .length = 10});
    }
  }
  /// \return what is wrong with the completion
  std::string complete(const Completion& done) {
    std::string wrong;
    static_cast<void>(queue_.complete(done, wrong));
    return wrong;
  }

  Outstanding queue_;
};

TEST_F(OutstandingTest, CompletionsInOrderAreRight) {
  EXPECT_EQ(queue_.awaited(), 2u);
  EXPECT_EQ(complete(of(1)), "");
  EXPECT_EQ(complete(of(3)), "");  // the second one was silent
  EXPECT_EQ(queue_.awaited(), 0u);
  EXPECT_EQ(queue_.size(), 1u);
}

TEST_F(OutstandingTest, WhatIsNotSignalledCompletesWhereItFails) {
  EXPECT_EQ(complete(of(1)), "");
  EXPECT_EQ(complete(of(2, CompletionStatus::Flushed)), "");
  EXPECT_EQ(complete(of(3, CompletionStatus::Flushed)), "");
  EXPECT_EQ(complete(of(4, CompletionStatus::Flushed)), "");
}

TEST_F(OutstandingTest, ASuccessThatWasNotToBeSignalledIsWrong) {
  EXPECT_EQ(complete(of(1)), "");
  EXPECT_NE(complete(of(2)), "");
}

TEST_F(OutstandingTest, OneThatOvertakesIsWrong) { EXPECT_NE(complete(of(3)), ""); }

TEST_F(OutstandingTest, TheSameOneTwiceIsWrong) {
  EXPECT_EQ(complete(of(1)), "");
  EXPECT_NE(complete(of(1)), "");
}

TEST_F(OutstandingTest, OneThatWasNeverPostedIsWrong) { EXPECT_NE(complete(of(9)), ""); }

TEST_F(OutstandingTest, AnotherOperationIsWrong) {
  Completion done = of(1);
  done.opcode = Opcode::Write;
  EXPECT_NE(complete(done), "");
}

TEST_F(OutstandingTest, WhatIsGivenUpIsNotAwaited) {
  EXPECT_EQ(queue_.give_up().size(), 4u);
  EXPECT_EQ(queue_.size(), 0u);
  EXPECT_NE(complete(of(1)), "");
}

TEST(Stretch, MeetsWhatHasAnOctetOfIt) {
  const Stretch some{10, 5};
  EXPECT_TRUE(some.meets({14, 1}));
  EXPECT_TRUE(some.meets({0, 11}));
  EXPECT_FALSE(some.meets({15, 5}));
  EXPECT_FALSE(some.meets({0, 10}));
}

TEST(Incoming, AWriteMayChangeItsOctetsUntilAReadBehindItHasCompleted) {
  Incoming writes;
  writes.post({0, 8});
  const uint64_t behind_one = writes.posted();
  writes.post({8, 8});
  EXPECT_TRUE(writes.may_change({0, 1}));
  writes.placed(behind_one);
  EXPECT_FALSE(writes.may_change({0, 8}));
  EXPECT_TRUE(writes.may_change({0, 9}));
  writes.placed(writes.posted());
  EXPECT_FALSE(writes.may_change({0, 100}));
}

TEST(Life, NothingIsUnderWayOnceTheConnectionHasEnded) {
  Life life;
  life.sends.post({.id = 1, .opcode = Opcode::Read, .length = 10, .place = 100});
  EXPECT_FALSE(life.may_change({0, 100}));
  EXPECT_TRUE(life.may_change({109, 1}));
  life.over = true;
  EXPECT_FALSE(life.may_change({109, 1}));
}

class MessagesTest : public ::testing::Test {
 protected:
  /// \return what is wrong with a receive of the next message, which is this
  static std::string receive(const Message& message, const Completion& done) {
    Messages messages;
    messages.post(message);
    std::string wrong;
    static_cast<void>(messages.receive(done, wrong));
    return wrong;
  }
};

TEST_F(MessagesTest, ComeAsTheyWereSent) {
  const ImmediateData eight{1, 2, 3, 4, 5, 6, 7, 8};
  EXPECT_EQ(receive({.length = 5}, {.length = 5}), "");
  EXPECT_EQ(receive({.solicited = true}, {.solicited = true}), "");
  EXPECT_EQ(receive({.invalidates = 7}, {.invalidated_stag = 7}), "");
  EXPECT_EQ(receive({.immediate = eight}, {.has_immediate = true, .immediate = eight}), "");
}

TEST_F(MessagesTest, WhatIsNotAsItWasSentIsWrong) {
  const ImmediateData eight{1, 2, 3, 4, 5, 6, 7, 8};
  EXPECT_NE(receive({.length = 5}, {.length = 4}), "");
  EXPECT_NE(receive({.solicited = true}, {}), "");
  EXPECT_NE(receive({}, {.solicited = true}), "");
  EXPECT_NE(receive({.invalidates = 7}, {.invalidated_stag = 8}), "");
  EXPECT_NE(receive({.invalidates = 7}, {}), "");
  EXPECT_NE(receive({.immediate = eight}, {.has_immediate = true}), "");
  EXPECT_NE(receive({}, {.has_immediate = true, .immediate = eight}), "");
  std::string wrong;
  EXPECT_FALSE(Messages().receive({}, wrong));
  EXPECT_NE(wrong, "");
}

}  // namespace
}  // namespace rnic::spin

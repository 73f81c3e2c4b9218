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

}  // namespace
}  // namespace rnic::spin

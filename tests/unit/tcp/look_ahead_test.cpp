// What a fetch brings nearer cannot be seen; what is left to be asked for can.
#include "tcp/look_ahead.hpp"

#include <gtest/gtest.h>

#include <array>

namespace rnic::testing {
namespace {

constexpr size_t kLine = 64;
constexpr size_t kAtATime = tcp::LookAhead::kLinesAtATime * kLine;

std::array<char, 8192> memory;

llp::WorkingSet working_set() {
  return {{{{memory.data(), 640, 1000}, {memory.data() + 2048, 64, 0}, {&memory[4096], 0, 128}}}};
}

TEST(LookAhead, AsksForAFewLinesAtATime) {
  tcp::LookAhead ahead;
  ahead.begin(working_set(), memory.data(), 3 * kAtATime);
  // What a turn to send needs, and no more.
  size_t left = 3 * kAtATime + 1000 + 128;
  EXPECT_EQ(ahead.left(), left);
  for (int steps = 0; left != 0; ++steps) {
    ASSERT_LT(steps, 3 + 2 + 1 + 1) << "one piece at a time, one of which is empty";
    ahead.step();
    EXPECT_LE(left - ahead.left(), kAtATime);
    left = ahead.left();
  }
  ahead.step();
  EXPECT_EQ(ahead.left(), 0u);
}

TEST(LookAhead, ATurnThatIsOverAsksForTheRest) {
  tcp::LookAhead ahead;
  ahead.finish();
  ahead.begin(working_set(), memory.data(), 1824);
  ahead.step();
  EXPECT_NE(ahead.left(), 0u);
  ahead.finish();
  EXPECT_EQ(ahead.left(), 0u);
}

TEST(LookAhead, ANewTurnForgetsTheOld) {
  tcp::LookAhead ahead;
  EXPECT_EQ(ahead.left(), 0u);
  ahead.begin(working_set(), memory.data(), 1824);
  ahead.step();
  ahead.begin({}, nullptr, 0);
  EXPECT_EQ(ahead.left(), 0u);
  // There are pieces still, and all are empty.
  for (int i = 0; i < 5; ++i) ahead.step();
  EXPECT_EQ(ahead.left(), 0u);
}

}  // namespace
}  // namespace rnic::testing

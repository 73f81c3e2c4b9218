// Where the gaps of a run are.
#include <gtest/gtest.h>

#include "llp/spaced_copy.hpp"

namespace rnic::llp {
namespace {

TEST(Spacing, CountsTheGapsInFrontOfTheLastOctet) {
  const Spacing spacing{10, 508, 4};
  EXPECT_EQ(spacing.gaps(0), 0u);
  EXPECT_EQ(spacing.gaps(10), 0u);
  EXPECT_EQ(spacing.gaps(11), 1u);
  EXPECT_EQ(spacing.gaps(518), 1u);
  EXPECT_EQ(spacing.gaps(519), 2u);
  EXPECT_EQ((Spacing{0, 508, 4}.gaps(1)), 1u);
}

}  // namespace
}  // namespace rnic::llp

// What the kernel's scheduler tells of a thread that waits for its core.

#include "wakeup/core_wait.hpp"

#include <gtest/gtest.h>

namespace rnic::wakeup {
namespace {

using std::chrono::microseconds;
using std::chrono::milliseconds;

TEST(CoreWait, ReadsTheKernelsLine) {
  const auto tally = parse_schedstat("162994 3023123 2\n");
  ASSERT_TRUE(tally);
  EXPECT_EQ(tally->waited, std::chrono::nanoseconds(3023123));
  EXPECT_EQ(tally->runs, 2u);
}

TEST(CoreWait, TakesNoOtherLine) {
  for (const char* line : {"", "\n", "1", "1 2", "1 2 ", "a 2 3", "1 -2 3", "1 2 x", ". . .",
                           "1 9223372036854775808 3", "1 2 18446744073709551616"}) {
    EXPECT_FALSE(parse_schedstat(line)) << line;
  }
  EXPECT_TRUE(parse_schedstat("0 9223372036854775807 18446744073709551615"));
}

TEST(CoreWait, AWaitIsLongInAllAndInTheMean) {
  const CoreTally earlier{milliseconds(7), 100};
  const auto later = [&](base::Duration waited, uint64_t runs) {
    return CoreTally{earlier.waited + waited, earlier.runs + runs};
  };
  EXPECT_FALSE(CoreWait::is_wait(earlier, earlier));
  EXPECT_TRUE(CoreWait::is_wait(earlier, later(CoreWait::kLong, 1)));
  EXPECT_FALSE(CoreWait::is_wait(earlier, later(CoreWait::kLong - microseconds(1), 1)));
  // A slice of another thread among many runs that began at once.
  EXPECT_TRUE(CoreWait::is_wait(earlier, later(milliseconds(3), 30)));
  // Many runs, each behind another thread that had a few microseconds to go.
  EXPECT_FALSE(CoreWait::is_wait(earlier, later(milliseconds(3), 31)));
}

TEST(CoreWait, TheKernelIsAskedNowAndThen) {
  CoreWait mine = CoreWait::of_this_thread();
  base::Now now{std::chrono::seconds(1)};
  static_cast<void>(mine.has_waited(now));
  // Whatever the thread has waited for since: it is not asked.
  EXPECT_FALSE(mine.has_waited(now + CoreWait::kEach - microseconds(1)));
}

TEST(CoreWait, WithoutTheKernelsFileNobodyWaits) {
  CoreWait nothing;
  EXPECT_FALSE(nothing.has_waited(base::Now(std::chrono::seconds(1))));
  EXPECT_FALSE(nothing.has_waited(base::Now(std::chrono::seconds(2))));
}

}  // namespace
}  // namespace rnic::wakeup

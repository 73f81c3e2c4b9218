// Octets go between a run with gaps and one without, whatever the kernel and wherever they stand.
#include "llp/spaced_copy.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <iostream>
#include <string>
#include <vector>

namespace rnic::llp {
namespace {

constexpr uint8_t kUntouched = 0xee;
constexpr size_t kMargin = 128;  // octets in front of and behind what a kernel may write

uint8_t octet(size_t i) { return static_cast<uint8_t>(1 + i * 31 % 200); }

class SpacedCopy : public ::testing::TestWithParam<SpacedKernel> {
 protected:
  /// Octet i of the content in a run with gaps.
  static size_t place(size_t i, const Spacing& spacing) {
    return i + size_t{spacing.gap} * spacing.gaps(i + 1);
  }
  static size_t run_length(size_t n, const Spacing& spacing) {
    return n == 0 ? 0 : place(n - 1, spacing) + 1;
  }

  static void check_gather(size_t n, const Spacing& spacing, size_t from, size_t to) {
    // Its size is that of the run: memory checkers see what is read behind it.
    std::vector<uint8_t> source(from + run_length(n, spacing), 0);
    std::vector<uint8_t> target(kMargin + to + n + kMargin, kUntouched);
    for (size_t i = 0; i < n; ++i) source[from + place(i, spacing)] = octet(i);
    GetParam().gather(target.data() + kMargin + to, source.data() + from, n, spacing);
    for (size_t i = 0; i < target.size(); ++i) {
      const bool inside = i >= kMargin + to && i < kMargin + to + n;
      ASSERT_EQ(target[i], inside ? octet(i - kMargin - to) : kUntouched) << i;
    }
  }

  static void check_spread(size_t n, const Spacing& spacing, size_t from, size_t to) {
    std::vector<uint8_t> source(from + n);
    for (size_t i = 0; i < n; ++i) source[from + i] = octet(i);
    const size_t length = run_length(n, spacing);
    std::vector<uint8_t> target(kMargin + to + length + kMargin, kUntouched);
    GetParam().spread(target.data() + kMargin + to, source.data() + from, n, spacing);
    const auto run = target.begin() + static_cast<std::ptrdiff_t>(kMargin + to);
    for (size_t i = 0; i < n; ++i) ASSERT_EQ(run[place(i, spacing)], octet(i)) << i;
    const auto untouched = [](uint8_t o) { return o == kUntouched; };
    EXPECT_TRUE(std::all_of(target.begin(), run, untouched));
    EXPECT_TRUE(std::all_of(run + static_cast<std::ptrdiff_t>(length), target.end(), untouched));
  }

  static void check(size_t n, const Spacing& spacing, size_t from, size_t to) {
    SCOPED_TRACE(std::to_string(n) + " octets, first gap behind " + std::to_string(spacing.first) +
                 ", from " + std::to_string(from) + " to " + std::to_string(to));
    check_gather(n, spacing, from, to);
    check_spread(n, spacing, from, to);
  }
};

// The second index moves with the length, so that each alignment meets each place of a gap.
TEST_P(SpacedCopy, EachLengthAndPlaceOfTheFirstGap) {
  for (uint32_t first = 0; first <= 508; first += 1 + first / 64) {
    for (size_t n = 0; n < 1400; n += 1 + n / 24) {
      check(n, {first, 508, 4}, n % 64, (n * 7 + first) % 64);
      if (HasFatalFailure()) return;
    }
  }
}

TEST_P(SpacedCopy, EachAlignment) {
  for (size_t from = 0; from < 64; ++from) {
    for (size_t to = 0; to < 64; ++to) {
      check(2100, {static_cast<uint32_t>(4 * to), 508, 4}, from, to);
      if (HasFatalFailure()) return;
    }
  }
}

TEST_P(SpacedCopy, OtherDistances) {
  for (const uint32_t between : {Spacing::kLeastBetween, 65u, 100u, 128u, 1000u}) {
    for (const uint32_t gap : {1u, 4u, 63u, 64u, 200u}) {
      for (size_t n = 0; n < 700; n += 1 + n / 16) {
        check(n, {static_cast<uint32_t>(n % between), between, gap}, n % 61, n % 59);
        if (HasFatalFailure()) return;
      }
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Kernels, SpacedCopy, ::testing::ValuesIn(spaced_kernels()),
                         [](const auto& param) { return std::string(param.param.name); });

TEST(SpacedKernels, TheLastOneThatTheCpuHasIsUsed) {
  EXPECT_STREQ(spaced_kernels().front().name, "pieces");
  EXPECT_STREQ(spaced_kernel().name, spaced_kernels().back().name);
  if (spaced_kernels().size() < 2) {
    GTEST_SKIP() << "this CPU lacks AVX-512: that kernel was not run";
  }
}

}  // namespace
}  // namespace rnic::llp

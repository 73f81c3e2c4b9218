#include "crc/crc.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <numeric>
#include <string>
#include <string_view>
#include <vector>

#include "base/bytes.hpp"
#include "base/prng.hpp"
#include "crc/kernels.hpp"

namespace rnic::crc {
namespace {

std::vector<uint8_t> random_octets(size_t n, uint64_t seed) {
  base::Prng prng(seed);
  std::vector<uint8_t> octets(n);
  for (uint8_t& octet : octets) octet = static_cast<uint8_t>(prng.next());
  return octets;
}

const Kernel& reference() { return available_kernels().front(); }

class EachKernel : public testing::TestWithParam<Kernel> {
 protected:
  static uint32_t value(base::ByteView octets) {
    return finish(GetParam().update(kInit, octets.data(), octets.size()));
  }
  static uint32_t value_by_copy(base::ByteView octets) {
    std::vector<uint8_t> to(octets.size());
    return finish(GetParam().copy(kInit, to.data(), octets.data(), octets.size()));
  }
  static void expect_value(base::ByteView octets, uint32_t expected) {
    EXPECT_EQ(value(octets), expected);
    EXPECT_EQ(value_by_copy(octets), expected);
  }
};

INSTANTIATE_TEST_SUITE_P(Crc, EachKernel,
                         testing::ValuesIn(available_kernels().begin(), available_kernels().end()),
                         [](const auto& row) { return std::string(row.param.name); });

std::vector<uint8_t> with_zeros(std::vector<uint8_t> octets, size_t zeros) {
  octets.resize(octets.size() + zeros);
  return octets;
}

// RFC 5044 figure 5, the leading marker is covered.
TEST_P(EachKernel, Rfc5044Figure5_MPA_4_4_V1) {
  expect_value(
      with_zeros({0, 0, 0, 0, 0, 0x2a, 0x41, 0x43, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1, 0, 0, 0, 0},
                 24),
      0x83992352);
}

// RFC 5044 figure 6, a marker inside.
TEST_P(EachKernel, Rfc5044Figure6_MPA_4_4_V2) {
  expect_value(with_zeros({0, 0x2a, 0x41, 0x43, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 2, 0, 0, 0, 0,  //
                           0, 0,    0,    0x14},
                          24),
               0x98589284);
}

// Draft-culley-iwarp-mpa-00 figure 5.
TEST_P(EachKernel, Draft00Figure5_MPA00_7_2_V1) {
  expect_value(
      with_zeros({0, 0, 0, 0, 0, 0x2a, 0x40, 0x03, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1, 0, 0, 0, 0},
                 24),
      0x84b3864c);
}

// Draft-culley-iwarp-mpa-00 figure 6.
TEST_P(EachKernel, Draft00Figure6_MPA00_7_2_V2) {
  expect_value(with_zeros({0, 0x2a, 0x40, 0x03, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 2, 0, 0, 0, 0,  //
                           0, 0,    0,    0x14},
                          24),
               0x03d19ca1);
}

// MPA-4.4-06: RFC 3720 appendix B.4; values are the wire octets read least significant
// first.
TEST_P(EachKernel, Rfc3720Vectors_MPA_4_4_V3) {
  std::vector<uint8_t> octets(32, 0);
  expect_value(octets, 0x8a9136aa);
  octets.assign(32, 0xff);
  expect_value(octets, 0x62a8ab43);
  std::iota(octets.begin(), octets.end(), uint8_t{0});
  expect_value(octets, 0x46dd794e);
  std::reverse(octets.begin(), octets.end());
  expect_value(octets, 0x113fdb5c);
  const std::string digits = "123456789";
  expect_value({reinterpret_cast<const uint8_t*>(digits.data()), digits.size()}, 0xe3069283);
}

// Zero-length Send and Write without markers; the CRC's low octet is first on the wire.
TEST_P(EachKernel, RegressionFpdus_MPA_4_4_V4) {
  expect_value(with_zeros({0, 0x12, 0x41, 0x43, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1}, 4),
               0xc4e87b58);
  expect_value(with_zeros({0, 0x0e, 0xc1, 0x40}, 12), 0xab7205a3);
}

TEST_P(EachKernel, NothingChangesNothing) {
  EXPECT_EQ(GetParam().update(0x12345678, nullptr, 0), 0x12345678u);
  EXPECT_EQ(GetParam().update_short(0x12345678, nullptr, 0), 0x12345678u);
  EXPECT_EQ(GetParam().copy(0x12345678, nullptr, nullptr, 0), 0x12345678u);
}

TEST_P(EachKernel, AllLengthsAndAlignments) {
  const std::vector<uint8_t> octets = random_octets(700, 1);
  for (size_t offset = 0; offset < 16; ++offset) {
    for (size_t n = 0; n <= 600; ++n) {
      const uint8_t* data = octets.data() + offset;
      const uint32_t start = static_cast<uint32_t>(n * 0x9e3779b9u);
      const uint32_t expected = reference().update(start, data, n);
      ASSERT_EQ(GetParam().update(start, data, n), expected)
          << n << " octets at alignment " << offset;
      if (n >= kShort) continue;
      ASSERT_EQ(GetParam().update_short(start, data, n), expected)
          << n << " octets at alignment " << offset;
    }
  }
}

TEST_P(EachKernel, CopyCopiesAndTouchesNothingElse) {
  constexpr size_t kGuard = 80;
  const std::vector<uint8_t> octets = random_octets(700, 2);
  std::vector<uint8_t> to(700 + 2 * kGuard);
  for (size_t offset = 0; offset < 16; ++offset) {
    for (size_t n = 0; n <= 600; ++n) {
      const uint8_t* from = octets.data() + (15 - offset);
      std::fill(to.begin(), to.end(), 0xee);
      uint8_t* at = to.data() + kGuard + offset;
      const uint32_t start = static_cast<uint32_t>(n * 0x9e3779b9u);
      ASSERT_EQ(GetParam().copy(start, at, from, n), reference().update(start, from, n)) << n;
      ASSERT_TRUE(std::equal(at, at + n, from)) << n;
      const auto untouched = [](uint8_t octet) { return octet == 0xee; };
      ASSERT_TRUE(std::all_of(to.data(), at, untouched)) << n << " at " << offset;
      ASSERT_TRUE(std::all_of(at + n, to.data() + to.size(), untouched)) << n << " at " << offset;
    }
  }
}

TEST_P(EachKernel, BigRandomRuns) {
  const std::vector<uint8_t> octets = random_octets(300'000, 3);
  std::vector<uint8_t> to(octets.size());
  base::Prng prng(4);
  for (int round = 0; round < 40; ++round) {
    const size_t n = prng.below(octets.size() - 64);
    const uint8_t* from = octets.data() + prng.below(64);
    const uint32_t expected = reference().update(kInit, from, n);
    ASSERT_EQ(GetParam().update(kInit, from, n), expected) << n;
    ASSERT_EQ(GetParam().copy(kInit, to.data(), from, n), expected) << n;
    ASSERT_TRUE(std::equal(from, from + n, to.begin())) << n;
  }
}

// Every length through several blocks of the widest kernels.
TEST_P(EachKernel, EveryFpduLength) {
  const std::vector<uint8_t> octets = random_octets(16'384, 5);
  std::vector<uint8_t> copied(octets.size());
  uint32_t expected = kInit;
  for (size_t n = 0; n < octets.size(); ++n) {
    if (n % 3 == 0) {
      ASSERT_EQ(GetParam().update(kInit, octets.data(), n), expected) << n;
    }
    if (n % 41 == 0) {
      std::fill(copied.begin(), copied.end(), uint8_t{0});
      ASSERT_EQ(GetParam().copy(kInit, copied.data(), octets.data(), n), expected) << n;
      const auto end = copied.begin() + static_cast<ptrdiff_t>(n);
      ASSERT_TRUE(std::equal(copied.begin(), end, octets.begin())) << n;
      ASSERT_EQ(std::count(end, copied.end(), uint8_t{0}), copied.end() - end) << n;
    }
    expected = reference().update(expected, octets.data() + n, 1);
  }
}

// Vectors that are lines of the cache: whatever is before the first line and behind the last one,
// and whatever number of vectors is left in between, by both ways for long runs.
TEST_P(EachKernel, WhereverLinesBegin) {
  constexpr size_t kLine = 64;
  const std::vector<uint8_t> octets = random_octets(4500, 8);
  std::vector<uint8_t> to(octets.size() + 2 * kLine);
  for (size_t offset = 0; offset < kLine; ++offset) {
    const auto start = static_cast<uint32_t>(offset * 0x9e3779b9u);
    const uint8_t* from = octets.data() + offset;
    uint32_t expected = start;
    for (size_t n = 0; n < octets.size() - kLine; ++n) {
      if (n > 1000 && n % 7 == offset % 7) {
        ASSERT_EQ(GetParam().update(start, from, n), expected) << n << " octets at " << offset;
        uint8_t* at = to.data() + kLine + n % kLine;
        at[-1] = at[n] = 0xee;
        ASSERT_EQ(GetParam().copy(start, at, from, n), expected) << n << " octets to " << n % kLine;
        ASSERT_TRUE(std::equal(from, from + n, at)) << n;
        ASSERT_TRUE(at[-1] == 0xee && at[n] == 0xee) << n;
      }
      expected = reference().update(expected, from + n, 1);
    }
  }
}

TEST_P(EachKernel, SplitUpdatesEqualOne) {
  const std::vector<uint8_t> octets = random_octets(9000, 6);
  const uint32_t expected = reference().update(kInit, octets.data(), octets.size());
  base::Prng prng(7);
  for (int round = 0; round < 200; ++round) {
    uint32_t crc = kInit;
    std::vector<uint8_t> to(octets.size());
    for (size_t at = 0; at < octets.size();) {
      const size_t n = std::min<size_t>(prng.below(3000), octets.size() - at);
      crc = prng.chance(0.5) ? GetParam().update(crc, octets.data() + at, n)
                             : GetParam().copy(crc, to.data() + at, octets.data() + at, n);
      at += n;
    }
    ASSERT_EQ(crc, expected);
  }
}

TEST(Selection, ReferenceIsFirstAndTheLastIsTheDefault) {
  ASSERT_GE(available_kernels().size(), 2u);
  EXPECT_EQ(available_kernels().front().name, "ref");
  EXPECT_EQ(active().name, available_kernels().back().name);
}

// What begins a product of 512 bits in each cycle has a kernel of its own; the others keep theirs.
TEST(Selection, WideProductsAreChosenWhereTheyAreQuick) {
  std::vector<std::string_view> names;
  for (const Kernel& kernel : available_kernels()) names.push_back(kernel.name);
  const auto wide = std::find(names.begin(), names.end(), "avx512wide");
  const auto plain = std::find(names.begin(), names.end(), "avx512");
  if (wide == names.end()) GTEST_SKIP() << "this CPU lacks AVX-512: that kernel was not run";
  ASSERT_NE(plain, names.end());
  EXPECT_EQ(plain < wide, __builtin_cpu_is("intel") != 0);
}

TEST(Selection, ByName) {
  const std::string before(active().name);
  EXPECT_TRUE(select("ref"));
  EXPECT_EQ(active().name, "ref");
  EXPECT_FALSE(select("no such kernel"));
  EXPECT_EQ(active().name, "ref");
  const uint8_t octets[] = {1, 2, 3};
  const uint32_t by_ref = update(kInit, octets, sizeof octets);
  EXPECT_TRUE(select(before));
  EXPECT_EQ(update(kInit, octets, sizeof octets), by_ref);
}

// The arithmetic of the folding constants, in which a register's bit 31 - i stands for x^i.
TEST(Powers, AreThoseOfTheReference) {
  using internal::x_power;
  EXPECT_EQ(x_power(0), 0x80000000u);
  EXPECT_EQ(x_power(1), 0x40000000u);
  EXPECT_EQ(x_power(31), 1u);
  EXPECT_EQ(x_power(32), internal::kPolynomial);
  const std::vector<uint8_t> zeros(600);
  for (unsigned n = 0; n <= 8 * zeros.size(); ++n) {
    // x times what went before, and what the reference makes of whole octets of zeros.
    const uint32_t v = x_power(n);
    ASSERT_EQ(x_power(n + 1), (v >> 1) ^ ((v & 1) != 0 ? internal::kPolynomial : 0)) << n;
    if (n % 8 == 0) {
      ASSERT_EQ(v, reference().update(0x80000000u, zeros.data(), n / 8)) << n;
      ASSERT_EQ(internal::shift_octet(v), x_power(n + 8)) << n;
    }
    ASSERT_EQ(internal::fold_constant(n), uint64_t{v} * 2) << n;
    uint64_t below = internal::fold_constant_below(n) / 2;
    for (int octet = 0; octet < 4; ++octet) {
      below = internal::shift_octet(static_cast<uint32_t>(below));
    }
    ASSERT_EQ(below, v) << n;
  }
}

// A register behind zero octets, and a CRC put together of parts in any order.
TEST(Shift, IsWhatZeroOctetsDo) {
  const std::vector<uint8_t> octets = random_octets(3000, 5);
  const auto part = [&](uint32_t crc, size_t from, size_t to) {
    return reference().update(crc, octets.data() + from, to - from);
  };
  const std::vector<uint8_t> zeros(70'000);
  for (const size_t n : {0u, 1u, 2u, 3u, 4u, 7u, 8u, 255u, 1460u, 8948u, 65'536u, 70'000u}) {
    for (const uint32_t crc : {0u, 1u, kInit, 0x12345678u}) {
      ASSERT_EQ(shift(crc, n), reference().update(crc, zeros.data(), n)) << n;
    }
  }
  base::Prng prng(6);
  for (int round = 0; round < 100; ++round) {
    const size_t a = prng.below(octets.size()), b = prng.between(a, octets.size());
    const size_t end = octets.size();
    const uint32_t together = shift(part(0, b, end), 0) ^ shift(part(0, 0, a), end - a) ^
                              shift(part(0, a, b), end - b) ^ shift(kInit, end);
    ASSERT_EQ(together, part(kInit, 0, end)) << a << ' ' << b;
  }
}

}  // namespace
}  // namespace rnic::crc

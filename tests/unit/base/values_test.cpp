#include <gtest/gtest.h>

#include <array>
#include <new>
#include <set>
#include <stdexcept>
#include <string>
#include <utility>

#include "base/base.hpp"
#include "base/counters.hpp"
#include "base/log.hpp"
#include "base/prng.hpp"
#include "base/quantities.hpp"
#include "base/starved.hpp"

#define TEST_COUNTERS(X)          \
  X(first, "frames", "one thing") \
  X(second, "octets", "another")

namespace rnic::base {
namespace {

// RFC 9293 s.3.4: comparison modulo 2^32.
TEST(Seq32, OrderAcrossTheWrap) {
  const Seq32 high{0xfffffff0};
  const Seq32 low = high + 0x20;
  EXPECT_EQ(low.value, 0x10u);
  EXPECT_TRUE(before(high, low));
  EXPECT_TRUE(after(low, high));
  EXPECT_FALSE(before(low, high));
  EXPECT_TRUE(before_eq(high, high));
  EXPECT_TRUE(after_eq(high, high));
  EXPECT_EQ(low - high, 0x20u);
}

TEST(Quantities, AreTold) {
  const auto words = [](uint64_t regions, uint64_t windows, uint64_t pairs) {
    return in_words({{regions, "region", "regions"},
                     {windows, "window", "windows"},
                     {pairs, "queue pair", "queue pairs"}});
  };
  EXPECT_EQ(words(0, 0, 0), "");
  EXPECT_EQ(words(0, 1, 0), "1 window");
  EXPECT_EQ(words(2, 0, 1), "2 regions and 1 queue pair");
  EXPECT_EQ(words(1, 2, 3), "1 region, 2 windows and 3 queue pairs");
}

TEST(Seq32, WithinIsHalfOpenAcrossTheWrap) {
  const Seq32 a{0xffffffff};
  const Seq32 b{2};
  EXPECT_TRUE(within(a, a, b));
  EXPECT_TRUE(within(Seq32{0}, a, b));
  EXPECT_TRUE(within(Seq32{1}, a, b));
  EXPECT_FALSE(within(b, a, b));
  EXPECT_FALSE(within(Seq32{0xfffffffe}, a, b));
  EXPECT_FALSE(within(a, a, a));
}

TEST(Seq32, OrderHoldsForHalfTheSpaceFromAnywhere) {
  Prng prng(1);
  for (int i = 0; i < 10'000; ++i) {
    const Seq32 a{prng.next32()};
    const auto distance = static_cast<uint32_t>(prng.between(1, 0x7fffffff));
    const Seq32 b = a + distance;
    ASSERT_TRUE(before(a, b));
    ASSERT_FALSE(before(b, a));
    ASSERT_EQ(b - a, distance);
  }
}

TEST(Prng, SameSeedSameNumbers) {
  Prng a(42);
  Prng b(42);
  Prng c(43);
  int different = 0;
  for (int i = 0; i < 1000; ++i) {
    const uint64_t x = a.next();
    ASSERT_EQ(x, b.next());
    different += x != c.next();
  }
  EXPECT_EQ(different, 1000);
}

// Fixed for good: seeds in reports must replay.
TEST(Prng, RangesAndProbabilities) {
  Prng prng(7);
  std::set<uint64_t> seen;
  int hits = 0;
  for (int i = 0; i < 10'000; ++i) {
    const uint64_t v = prng.between(10, 14);
    ASSERT_GE(v, 10u);
    ASSERT_LE(v, 14u);
    seen.insert(v);
    ASSERT_EQ(prng.below(1), 0u);
    ASSERT_FALSE(prng.chance(0.0));
    ASSERT_TRUE(prng.chance(1.0));
    hits += prng.chance(0.25);
  }
  EXPECT_EQ(seen.size(), 5u);
  EXPECT_NEAR(hits, 2500, 250);
}

TEST(Time, SaturatesInsteadOfWrapping) {
  EXPECT_EQ(from_millis(0), Duration(0));
  EXPECT_EQ(from_millis(-3), Duration(-3'000'000));
  EXPECT_EQ(from_millis(INT64_MAX / 1'000'000), Duration(INT64_MAX / 1'000'000 * 1'000'000));
  for (const int64_t ms : {INT64_MAX, INT64_MAX - 1, INT64_MAX / 1'000'000 + 1}) {
    EXPECT_EQ(from_millis(ms), Duration::max()) << ms;
    EXPECT_EQ(from_millis(-ms), Duration::min()) << ms;
  }
  EXPECT_EQ(from_millis(INT64_MIN), Duration::min());
  const Now now = from_nanos(1'000);
  EXPECT_EQ(after(now, Duration(5)), from_nanos(1'005));
  EXPECT_EQ(after(now, Duration(-5)), from_nanos(995));
  EXPECT_EQ(after(now, Duration(-1'001)), Now{});
  EXPECT_EQ(after(now, Duration::min()), Now{});
  EXPECT_EQ(after(now, Duration::max()), kNever);
  EXPECT_EQ(after(now, kNever - now), kNever);
  EXPECT_EQ(after(now, kNever - now - Duration(1)), kNever - Duration(1));
}

TEST(Endian, RoundTripsAtEveryAlignment) {
  std::array<uint8_t, 24> octets{};
  for (size_t at = 0; at < 8; ++at) {
    store_be16(octets.data() + at, 0x0102);
    EXPECT_EQ(octets[at], 1);
    EXPECT_EQ(load_be16(octets.data() + at), 0x0102);
    store_be32(octets.data() + at, 0x01020304);
    EXPECT_EQ(octets[at + 3], 4);
    EXPECT_EQ(load_be32(octets.data() + at), 0x01020304u);
    store_be64(octets.data() + at, 0x0102030405060708);
    EXPECT_EQ(octets[at + 7], 8);
    EXPECT_EQ(load_be64(octets.data() + at), 0x0102030405060708u);
    store_le32(octets.data() + at, 0x01020304);
    EXPECT_EQ(octets[at], 4);
    EXPECT_EQ(load_le32(octets.data() + at), 0x01020304u);
  }
}

RNIC_DEFINE_COUNTERS(TestCounters, TEST_COUNTERS)

TEST(Counters, ListedWithNameUnitAndValue) {
  TestCounters counters;
  counters.second = 5;
  std::vector<std::string> rows;
  counters.for_each([&](const CounterRow& row) {
    rows.push_back(std::string(row.name) + " " + std::to_string(row.value) + " " + row.unit);
  });
  EXPECT_EQ(rows, (std::vector<std::string>{"first 0 frames", "second 5 octets"}));
}

TEST(Result, CarriesTheMessage) {
  const Status failed = fail(ErrorCode::NotFound, "no device \"x\"");
  ASSERT_FALSE(failed.has_value());
  EXPECT_EQ(failed.error().code, ErrorCode::NotFound);
  EXPECT_EQ(failed.error().message, "no device \"x\"");
  std::set<std::string> names;
  for (int code = 0; code <= static_cast<int>(ErrorCode::Abandoned); ++code) {
    names.insert(to_string(static_cast<ErrorCode>(code)));
  }
  EXPECT_EQ(names.size(), static_cast<size_t>(ErrorCode::Abandoned) + 1);
}

// What the machine has no memory for is no more than that: all else goes on to whoever called.
TEST(Attempt, OnlyMemoryThatIsNotThereIsAnAnswer) {
  EXPECT_TRUE(attempt([] {}));
  EXPECT_FALSE(attempt([] { throw std::bad_alloc(); }));
  EXPECT_FALSE(attempt([] { throw std::length_error("more than any memory has"); }));
  EXPECT_THROW(static_cast<void>(attempt([] { throw std::runtime_error("else"); })),
               std::runtime_error);
}

// A line is written when its level is that of the log or above.
TEST(Log, WritesWhatIsNotBelowItsLevel) {
  const std::pair<LogLevel, const char*> levels[] = {{LogLevel::Debug, "debug"},
                                                     {LogLevel::Info, "info"},
                                                     {LogLevel::Warning, "warning"},
                                                     {LogLevel::Error, "error"}};
  for (const auto& [least, least_name] : levels) {
    set_log_level(least);
    for (const auto& [level, name] : levels) {
      ::testing::internal::CaptureStderr();
      log(level, "base", std::string_view("a line"));
      const std::string line = ::testing::internal::GetCapturedStderr();
      EXPECT_EQ(log_enabled(level), level >= least) << least_name << ' ' << name;
      if (level < least) {
        EXPECT_EQ(line, "") << least_name;
      } else {
        EXPECT_TRUE(line.ends_with(std::string(name) + " base: a line\n")) << line;
      }
    }
  }
  set_log_level(LogLevel::Warning);
}

TEST(CheckDeath, SaysWhereAndWhat) {
  EXPECT_DEATH(RNIC_CHECK(1 + 1 == 3), "values_test.cpp.*1 \\+ 1 == 3");
}

}  // namespace
}  // namespace rnic::base

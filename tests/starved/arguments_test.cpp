// Every number that a call of the API takes at the end of its type, in a process of its own: the
// call works or is refused in one line, quickly; nothing is thrown, nothing touched that nobody
// uses, and the device goes on.
//
// RANGES_SHOW=1 prints what each has answered.

#include "arguments.hpp"

#include <gtest/gtest.h>

#include <cstdlib>
#include <regex>

#include "measured.hpp"

namespace rnic::starved {
namespace {

constexpr uint64_t kMb = 1 << 20;
constexpr uint64_t kGb = 1 << 30;
constexpr uint64_t kTouched = 16 * kMb;
constexpr double kSeconds = 2;  // of computing

/// Queues as deep as the settings allow any.
const std::vector<std::string>& deepest() {
  static const std::vector<std::string> all{"limits.max_work_depth=1048576",
                                            "limits.max_reads=16383"};
  return all;
}

/// \return "" or what is wrong with the answer
std::string tried(const Extreme& extreme, World& world) {
  Status status;
  try {
    status = extreme.make(world);
  } catch (const std::exception& error) {
    return std::string("an exception has left the API: ") + error.what();
  }
  if (std::getenv("RANGES_SHOW") != nullptr) {
    std::printf("%-40s %s\n", extreme.names, status ? "done" : status.error().message.c_str());
    std::fflush(stdout);
  }
  if (status) return extreme.impossible ? "it was taken" : "";
  const std::string& message = status.error().message;
  if (message.empty() || message.find('\n') != std::string::npos) return "told badly: " + message;
  if (!extreme.impossible) return "refused: " + message;
  if (status.error().code != ErrorCode::ResourceExhausted) return "";
  static const std::regex kAsked(
      "are asked for, and ([0-9.]+ [KMGTPE]B are there \\(.+\\)|of limits.* [0-9]+ are left)");
  return std::regex_search(message, kAsked) ? "" : "without both figures: " + message;
}

class Arguments : public ::testing::TestWithParam<bool> {
 protected:
  static Setting setting() { return {Below::Wire, GetParam()}; }
  /// In a child, before it is measured: a process that was forked from one with DPDK has none.
  static void start_dpdk() { const World world(Setting{Below::Wire, false}, deepest()); }
};

TEST_P(Arguments, EndOfEach) {
  for (const Extreme& extreme : extremes()) {
    const auto trial = [&]() -> std::string {
      World world(setting(), deepest());
      const std::string wrong = tried(extreme, world);
      if (wrong.empty()) world.prove_traffic();
      return wrong;
    };
    const Spent spent = in_child(6 * kGb, trial, start_dpdk);
    EXPECT_TRUE(spent.alive) << extreme.names << ": " << spent.said;
    EXPECT_EQ(spent.said, "") << extreme.names;
    EXPECT_LE(spent.cpu_seconds, kSeconds) << extreme.names;
    EXPECT_LE(spent.grown.resident, kTouched) << extreme.names;
  }
}

/// What fits elsewhere is refused here, with the figures, and the same call succeeds where there is
/// more.
TEST_P(Arguments, WhatIsThereDecides) {
  for (const Extreme& extreme : extremes()) {
    const std::string name = extreme.names;
    const bool large = name == "Device::create_cq" || name == "ProtectionDomain::create_qp" ||
                       name == "QueuePair::start_trace";
    if (!large || extreme.impossible) continue;
    const auto trial = [&]() -> std::string {
      World world(setting(), deepest());
      limit_addresses(64 * kMb);
      const Status refused = extreme.make(world);
      if (refused) return "it was taken";
      static const std::regex kAsked(
          "[0-9.]+ [KMG]B of memory are asked for, and [0-9.]+ MB are there \\(.*ulimit -v\\)");
      if (!std::regex_search(refused.error().message, kAsked)) return refused.error().message;
      world.prove_traffic();
      return "";
    };
    const Spent spent = in_child(UINT64_MAX, trial, start_dpdk);
    EXPECT_TRUE(spent.alive) << extreme.names << ": " << spent.said;
    EXPECT_EQ(spent.said, "") << extreme.names;
  }
}

std::string shown(const ::testing::TestParamInfo<bool>& info) {
  return info.param ? "Threaded" : "Inline";
}
INSTANTIATE_TEST_SUITE_P(All, Arguments, ::testing::Bool(), shown);

}  // namespace
}  // namespace rnic::starved

int main(int argc, char** argv) {
  if (argc > 1 && std::string(argv[1]) == "--list") {
    for (const rnic::starved::Extreme& extreme : rnic::starved::extremes()) {
      std::puts(extreme.names);
    }
    return 0;
  }
  ::testing::InitGoogleTest(&argc, argv);
  return RUN_ALL_TESTS();
}

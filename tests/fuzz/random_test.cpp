// Each fuzzing target with inputs that nobody has chosen: random octets, and inputs of the corpus
// that were changed at random. What must not happen ends the program (fuzz::demand(), RNIC_CHECK,
// a sanitizer). The same inputs in every run.

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>
#include <vector>

#include "base/prng.hpp"

// What fuzz_*.cpp define; tests/fuzz/meson.build gives each a name of its own.
extern "C" {
int fuzz_device_input(const uint8_t* data, size_t size);
int fuzz_fpdus_input(const uint8_t* data, size_t size);
int fuzz_pair_input(const uint8_t* data, size_t size);
int fuzz_start_input(const uint8_t* data, size_t size);
int fuzz_tcp_input(const uint8_t* data, size_t size);
int fuzz_terminate_input(const uint8_t* data, size_t size);
}

namespace rnic::fuzz {
namespace {

using Octets = std::vector<uint8_t>;

struct Target {
  const char* name;  ///< of its folder in corpus/
  int (*run)(const uint8_t* data, size_t size);
};

constexpr Target kTargets[] = {
    {"device", fuzz_device_input}, {"fpdus", fuzz_fpdus_input}, {"pair", fuzz_pair_input},
    {"start", fuzz_start_input},   {"tcp", fuzz_tcp_input},     {"terminate", fuzz_terminate_input},
};

class RandomInputs : public ::testing::TestWithParam<Target> {
 protected:
  static constexpr int kRandom = 200;
  static constexpr int kChanged = 1000;
  static constexpr size_t kLongest = 1200;  // of an input, so that many are tried

  [[nodiscard]] static std::vector<Octets> corpus() {
    std::vector<std::filesystem::path> paths;
    const std::filesystem::path folder = std::string(RNIC_FUZZ_CORPUS) + "/" + GetParam().name;
    for (const auto& entry : std::filesystem::directory_iterator(folder)) {
      paths.push_back(entry.path());
    }
    std::sort(paths.begin(), paths.end());
    std::vector<Octets> found;
    for (const auto& path : paths) {
      std::ifstream file(path, std::ios::binary);
      found.emplace_back(std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>());
    }
    return found;
  }

  Octets random(size_t most) {
    Octets out(prng_.below(most) + 1);
    for (uint8_t& octet : out) octet = static_cast<uint8_t>(prng_.next());
    return out;
  }
  /// A few changes, as they turn a good input into a nearly good one.
  void change(Octets& input) {
    for (uint64_t changes = prng_.between(1, 4); changes > 0 && !input.empty(); --changes) {
      const auto at = static_cast<ptrdiff_t>(prng_.below(input.size()));
      switch (prng_.below(4)) {
        case 0: input[static_cast<size_t>(at)] ^= static_cast<uint8_t>(1u << prng_.below(8)); break;
        case 1: input[static_cast<size_t>(at)] = static_cast<uint8_t>(prng_.next()); break;
        case 2: input.erase(input.begin() + at); break;
        default: {
          const Octets some = random(8);
          input.insert(input.begin() + at, some.begin(), some.end());
        }
      }
    }
  }
  static void run(const Octets& input) {
    EXPECT_EQ(GetParam().run(input.data(), std::min(input.size(), kLongest)), 0);
  }

  base::Prng prng_{5042};
};
INSTANTIATE_TEST_SUITE_P(EachTarget, RandomInputs, ::testing::ValuesIn(kTargets),
                         [](const auto& told) { return std::string(told.param.name); });

TEST_P(RandomInputs, HarmNothing_SEC_FUZZ_01) {
  for (int i = 0; i < kRandom; ++i) run(random(kLongest));
  const std::vector<Octets> seeds = corpus();
  ASSERT_FALSE(seeds.empty());
  for (int i = 0; i < kChanged; ++i) {
    Octets input = seeds[prng_.below(seeds.size())];
    change(input);
    run(input);
  }
}

}  // namespace
}  // namespace rnic::fuzz

/// Tells of each test which mutants it comes past: a line "suite.case seconds ok|lame ids" in the
/// file that RNIC_MUTANTS_RECORD names. Linked into the programs of GoogleTest.
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cstdio>
#include <cstdlib>
#include <ctime>

#include "switch.hpp"

namespace {

using rnic::mutants::kMost;
using Reached = std::array<unsigned char, kMost>;

double processor_seconds() { return static_cast<double>(std::clock()) / CLOCKS_PER_SEC; }

/// What was reached since the last call.
Reached take_reached() {
  Reached taken;
  std::copy_n(rnic::mutants::reached, kMost, taken.begin());
  std::fill_n(rnic::mutants::reached, kMost, 0);
  return taken;
}

void add(Reached& all, const Reached& some) {
  for (int i = 0; i < kMost; ++i) all[i] |= some[i];
}

class Recorder : public testing::EmptyTestEventListener {
 public:
  explicit Recorder(FILE* file) : file_(file) {}

 private:
  // Static objects and the environment come before each test, whichever is chosen.
  void OnTestSuiteStart(const testing::TestSuite&) override {
    if (!begun_) program_ = take_reached();
    begun_ = true;
    suite_ = program_;
    (void)take_reached();
    first_ = true;
  }

  void OnTestStart(const testing::TestInfo&) override {
    if (first_) add(suite_, take_reached());  // what SetUpTestSuite() came past
    first_ = false;
    (void)take_reached();
    begin_ = processor_seconds();
  }

  void OnTestEnd(const testing::TestInfo& test) override {
    Reached all = take_reached();
    add(all, suite_);
    std::fprintf(file_, "%s.%s\t%.6f\t%s\t", test.test_suite_name(), test.name(),
                 processor_seconds() - begin_, test.result()->Failed() ? "lame" : "ok");
    for (int i = 0; i < kMost; ++i) {
      if (all[i] != 0) std::fprintf(file_, "%d ", i);
    }
    std::fputc('\n', file_);
    std::fflush(file_);
  }

  FILE* file_;
  Reached program_{}, suite_{};
  bool begun_ = false, first_ = false;
  double begin_ = 0;
};

__attribute__((constructor)) void record() {
  const char* path = std::getenv("RNIC_MUTANTS_RECORD");
  FILE* file = path ? std::fopen(path, "w") : nullptr;
  if (file) testing::UnitTest::GetInstance()->listeners().Append(new Recorder(file));
}

}  // namespace

// Every public call, with every request that it makes of the machine refused once, and with all
// from that one on refused.
//
// STARVED_LONG=1: all of it in each setting; STARVED_CALL=NAME: the calls of which this is a part.

#include <gtest/gtest.h>

#include <cstdlib>
#include <string>

#include "base/log.hpp"
#include "trial.hpp"

namespace rnic::starved {
namespace {

bool is_long() { return std::getenv("STARVED_LONG") != nullptr; }

/// Reading a configuration is the same in each setting.
bool reads_settings(const Call& call) {
  return std::string(call.names).find("Config::") != std::string::npos;
}
bool opens(const Call& call) { return std::string(call.names).starts_with("Context::open"); }

class Starved : public ::testing::TestWithParam<Setting> {
 protected:
  static constexpr int kMostFailures = 20;

  void SetUp() override {
    // What the first line of the log takes once is taken before the children are made.
    base::log(base::LogLevel::Warning, "starved", "a line like those of the children");
  }

  /// Every request of the call from number `from` on, one after the other.
  void refuse_each(const Call& call, Scarce what, uint64_t from) {
    const Verdict usual =
        attempt(call, GetParam(), {what, UINT64_MAX, false}, {.left_blocks = INT64_MAX});
    ASSERT_TRUE(usual.good) << call.names << ": " << usual.why;
    requests_ += usual.asked;
    for (uint64_t first = from; first <= usual.asked && failures_ < kMostFailures; ++first) {
      const bool some = GetParam().threaded && !is_long() && usual.asked > 6;
      if (some && first % 3 != usual.asked % 3) continue;
      refuse(call, {what, first, false}, usual);
      // Where one alone is survived, the rest mostly is: each fourth of many has to do.
      if (is_long() || usual.asked < 16 || first % 4 == 0) refuse(call, {what, first, true}, usual);
    }
  }

  void refuse(const Call& call, const Refusals& refusals, const Verdict& usual) {
    const Verdict verdict = attempt(call, GetParam(), refusals, usual);
    ++trials_;
    if (verdict.good) return;
    ++failures_;
    ADD_FAILURE() << call.names << ": request " << refusals.first << " of " << usual.asked
                  << " for " << to_string(refusals.what)
                  << (refusals.onwards ? " and all behind it" : "") << " refused: " << verdict.why;
  }

  /// How many requests it takes to read the configuration: Context::open() begins with these.
  uint64_t reading(Scarce what) {
    for (const Call& call : calls()) {
      if (std::string(call.names) != "Config::check") continue;
      return attempt(call, GetParam(), {what, UINT64_MAX, false}, {.left_blocks = INT64_MAX}).asked;
    }
    return 0;
  }

  void refuse_all(Scarce what) {
    const char* only = std::getenv("STARVED_CALL");
    const bool whole = is_long() || (GetParam().below == Below::Sockets && !GetParam().threaded);
    for (const Call& call : calls()) {
      if (call.where == Where::OnWire && GetParam().below != Below::Wire) continue;
      if (only != nullptr && std::string(call.names).find(only) == std::string::npos) continue;
      if (!whole && reads_settings(call)) continue;
      refuse_each(call, what, whole || !opens(call) ? 1 : reading(what) + 1);
    }
    std::printf("%s: %llu requests, %llu trials\n", to_string(what),
                static_cast<unsigned long long>(requests_),
                static_cast<unsigned long long>(trials_));
  }

  void refuse_all_where(Scarce what, bool asked_for) {
    if (asked_for || is_long()) refuse_all(what);
  }
  [[nodiscard]] static bool on_sockets(bool threaded) {
    return GetParam().below == Below::Sockets && GetParam().threaded == threaded;
  }

 private:
  uint64_t requests_ = 0;
  uint64_t trials_ = 0;
  int failures_ = 0;
};

TEST_P(Starved, Memory) { refuse_all(Scarce::Memory); }

// Where nothing of the kind is asked for, each call is made once for nothing: that is for the long
// form.
TEST_P(Starved, Mappings) { refuse_all_where(Scarce::Mapping, false); }
TEST_P(Starved, Threads) { refuse_all_where(Scarce::Thread, on_sockets(true)); }
TEST_P(Starved, Sockets) { refuse_all_where(Scarce::Socket, on_sockets(false)); }
TEST_P(Starved, Eventfds) { refuse_all_where(Scarce::Eventfd, on_sockets(true)); }
TEST_P(Starved, Epolls) { refuse_all_where(Scarce::Epoll, on_sockets(false)); }
TEST_P(Starved, Files) { refuse_all_where(Scarce::Open, on_sockets(false)); }
TEST_P(Starved, Writes) { refuse_all_where(Scarce::Write, on_sockets(true)); }

std::string shown(const ::testing::TestParamInfo<Setting>& info) { return name_of(info.param); }

INSTANTIATE_TEST_SUITE_P(All, Starved,
                         ::testing::Values(Setting{Below::Sockets, false},
                                           Setting{Below::Sockets, true},
                                           Setting{Below::Wire, false}, Setting{Below::Wire, true}),
                         shown);

}  // namespace
}  // namespace rnic::starved

int main(int argc, char** argv) {
  if (argc > 1 && std::string(argv[1]) == "--list") {
    for (const rnic::starved::Call& call : rnic::starved::calls()) {
      std::string names = call.names;
      std::erase(names, ',');
      std::puts(names.c_str());
    }
    return 0;
  }
  ::testing::InitGoogleTest(&argc, argv);
  return RUN_ALL_TESTS();
}

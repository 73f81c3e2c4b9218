// rnic-sim: seeded worlds of two devices in virtual time, judged by checkers.

#include <unistd.h>

#include <CLI/CLI.hpp>
#include <cstdio>
#include <filesystem>
#include <string>
#include <vector>

#include "base/log.hpp"
#include "report.hpp"
#include "runner.hpp"
#include "sabotage.hpp"

namespace {

using namespace rnic;
using namespace rnic::simulation;

struct Options {
  uint64_t seeds = 100;
  uint64_t first_seed = 1;
  std::string profile;
  uint64_t replay = 0;
  uint32_t jobs = 2;
  std::string out = "out/sim";
  bool sabotage = false;
  bool list = false;
};

int list_profiles() {
  for (const Profile& profile : profiles()) std::printf("%-20s %s\n", profile.name, profile.what);
  return 0;
}

/// The profile for a seed; nullptr and a line to stderr when the name is unknown.
const Profile* choose(const Options& options, uint64_t seed) {
  if (options.profile.empty()) return &profile_of_seed(seed);
  const Profile* profile = find_profile(options.profile);
  if (profile == nullptr) {
    std::fprintf(stderr, "rnic-sim: no profile '%s': --list shows them\n", options.profile.c_str());
  }
  return profile;
}

int replay(const Options& options) {
  const Profile* profile = choose(options, options.replay);
  if (profile == nullptr) return 2;
  std::error_code error;
  std::filesystem::create_directories(options.out, error);
  if (error) {
    std::fprintf(stderr, "rnic-sim: cannot create '%s': %s\n", options.out.c_str(),
                 error.message().c_str());
    return 2;
  }
  const std::string prefix = options.out + "/" + std::to_string(options.replay);
  Result result;
  result.task = {options.replay, profile};
  std::printf("%s: trace %s.trace, captures %s.left.pcapng and %s.right.pcapng\n", profile->name,
              prefix.c_str(), prefix.c_str(), prefix.c_str());
  std::fflush(stdout);
  result.outcome = run_task(result.task, {prefix});
  Report report(!options.profile.empty());
  report.add(result);
  report.print(false);
  std::printf("1 seeds, %llu failures\n", static_cast<unsigned long long>(report.failures()));
  return report.failures() == 0 ? 0 : 1;
}

int run(const Options& options) {
  std::vector<Task> tasks;
  for (uint64_t i = 0; i < options.seeds; ++i) {
    const uint64_t seed = options.first_seed + i;
    const Profile* profile = choose(options, seed);
    if (profile == nullptr) return 2;
    tasks.push_back({seed, profile});
  }
  Report report(!options.profile.empty());
  uint64_t finished = 0;
  run_tasks(tasks, options.jobs, base::Defect::None, [&](const Result& result) {
    report.add(result);
    if (++finished % 100 == 0) {
      std::printf("%llu of %llu worlds\n", static_cast<unsigned long long>(finished),
                  static_cast<unsigned long long>(tasks.size()));
      std::fflush(stdout);
    }
    return true;
  });
  report.print(options.seeds >= 500 && options.profile.empty());
  std::printf("%llu seeds, %llu failures\n", static_cast<unsigned long long>(options.seeds),
              static_cast<unsigned long long>(report.failures()));
  return report.failures() == 0 ? 0 : 1;
}

}  // namespace

int main(int argc, char** argv) {
  Options options;
  CLI::App app{
      "Seeded worlds of two soft RNICs in virtual time: every octet, completion and buffer is "
      "checked.\nExit status: 0 no failure, 1 failures, 2 usage or environment."};
  app.add_option("--seeds", options.seeds, "worlds to run")
      ->capture_default_str()
      ->check(CLI::Range(uint64_t{1}, uint64_t{1'000'000'000}));
  app.add_option("--first-seed", options.first_seed, "seed of the first world")
      ->capture_default_str();
  app.add_option("--profile", options.profile, "run every seed in this profile (see --list)");
  auto* replayed = app.add_option("--replay", options.replay,
                                  "run one seed, write its trace and captures under --out");
  app.add_option("--jobs", options.jobs, "processes")
      ->capture_default_str()
      ->check(CLI::Range(1, 256));
  app.add_option("--out", options.out, "folder for what a replay writes")->capture_default_str();
  app.add_flag("--sabotage", options.sabotage,
               "plant each known defect in turn; every one must be caught within 100 seeds");
  app.add_flag("--list", options.list, "list the profiles");
  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError& error) {
    return app.exit(error) == 0 ? 0 : 2;
  }
  base::set_log_level(base::LogLevel::Off);
  if (options.list) return list_profiles();
  if (options.sabotage) return run_sabotage(options.first_seed, options.jobs);
  if (replayed->count() != 0) return replay(options);
  return run(options);
}

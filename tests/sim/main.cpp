// rnic-sim: seeded worlds of two devices, or of streams, in virtual time, judged by checkers.

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
  for (const Scene& scene : scenes()) std::printf("%-20s %s\n", scene.name(), scene.what());
  return 0;
}

/// The worlds of a seed; none, and a line to stderr, when no profile has the name.
std::vector<Task> choose(const Options& options, uint64_t seed) {
  if (options.profile.empty()) return tasks_of_seed(seed);
  if (options.profile == "all") {
    std::vector<Task> tasks;
    for (const Scene& scene : scenes()) tasks.push_back({seed, &scene});
    return tasks;
  }
  const auto found = find_scenes(options.profile);
  if (found.empty()) {
    std::fprintf(stderr, "rnic-sim: no profile '%s': --list shows them\n", options.profile.c_str());
    return {};
  }
  return {{seed, found[seed % found.size()]}};
}

int finish(Report& report, bool complete, uint64_t seeds) {
  report.print(complete);
  std::printf("%llu seeds, %llu failures\n", static_cast<unsigned long long>(seeds),
              static_cast<unsigned long long>(report.failures()));
  return report.failures() == 0 ? 0 : 1;
}

int replay(const Options& options) {
  const std::vector<Task> tasks = choose(options, options.replay);
  if (tasks.empty()) return 2;
  std::error_code error;
  std::filesystem::create_directories(options.out, error);
  if (error) {
    std::fprintf(stderr, "rnic-sim: cannot create '%s': %s\n", options.out.c_str(),
                 error.message().c_str());
    return 2;
  }
  Report report;
  for (const Task& task : tasks) {
    const std::string prefix =
        options.out + "/" + task.scene->name() + "-" + std::to_string(options.replay);
    std::printf("%s: trace %s.trace, captures %s.left.pcapng and %s.right.pcapng\n",
                task.scene->name(), prefix.c_str(), prefix.c_str(), prefix.c_str());
    std::fflush(stdout);
    Result result;
    result.task = task;
    result.outcome = run_task(task, {prefix});
    report.add(result);
  }
  return finish(report, false, 1);
}

int run(const Options& options) {
  std::vector<Task> tasks;
  for (uint64_t i = 0; i < options.seeds; ++i) {
    const std::vector<Task> chosen = choose(options, options.first_seed + i);
    if (chosen.empty()) return 2;
    tasks.insert(tasks.end(), chosen.begin(), chosen.end());
  }
  Report report;
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
  const bool complete = options.profile == "all" || options.profile.empty();
  return finish(report, complete && options.seeds >= 500, options.seeds);
}

}  // namespace

int main(int argc, char** argv) {
  Options options;
  CLI::App app{
      "Seeded worlds in virtual time, two of each seed: two soft RNICs, and streams of TCP alone. "
      "Every octet, completion, segment and buffer is checked.\nExit status: 0 no failure, 1 "
      "failures, 2 usage or environment."};
  app.add_option("--seeds", options.seeds, "seeds to run")
      ->capture_default_str()
      ->check(CLI::Range(uint64_t{1}, uint64_t{1'000'000'000}));
  app.add_option("--first-seed", options.first_seed, "seed of the first world")
      ->capture_default_str();
  app.add_option("--profile", options.profile,
                 "run every seed in this profile, in the next one of those that match a pattern "
                 "such as 'tcp-*' (see --list), or in 'all' of them");
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

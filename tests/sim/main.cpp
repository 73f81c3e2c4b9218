// rnic-sim: seeded worlds of two devices, or of streams, in virtual time, judged by checkers.

#include <unistd.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <chrono>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <random>
#include <sstream>
#include <string>
#include <vector>

#include "base/log.hpp"
#include "fingerprint_list.hpp"
#include "program/program.hpp"
#include "report.hpp"
#include "runner.hpp"

namespace {

using namespace rnic;
using namespace rnic::simulation;

struct Options {
  uint64_t seeds = 100;
  uint64_t first_seed = 1;
  double hours = 0;
  std::string worlds;
  std::string fingerprints;
  bool accept = false;
  bool show_fingerprints = false;
  bool twins = false;
  std::string profile;
  uint64_t replay = 0;
  uint32_t jobs = 2;
  std::string out = "out/sim";
  std::vector<std::string> expected;
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
  std::vector<std::string> lost;
  for (const Task& task : tasks) {
    const std::string prefix =
        options.out + "/" + task.scene->name() + "-" + std::to_string(options.replay);
    std::printf("%s: trace %s.trace, captures %s.left.pcapng and %s.right.pcapng\n",
                task.scene->name(), prefix.c_str(), prefix.c_str(), prefix.c_str());
    std::fflush(stdout);
    TaskResult result;
    result.task = task;
    result.outcome = run_task(task, {prefix, &lost});
    report.add(result);
  }
  const int status = finish(report, false, 1);
  for (const std::string& line : lost) std::fprintf(stderr, "rnic-sim: %s\n", line.c_str());
  return lost.empty() ? status : program::kUsageStatus;
}

/// Runs worlds and reports them. \return false: a profile is unknown.
bool run_seeds(const Options& options, uint64_t first, uint64_t count, Report& report) {
  std::vector<Task> tasks;
  for (uint64_t i = 0; i < count; ++i) {
    const std::vector<Task> chosen = choose(options, first + i);
    if (chosen.empty()) return false;
    tasks.insert(tasks.end(), chosen.begin(), chosen.end());
  }
  for (Task& task : tasks) task.twin = options.twins;
  uint64_t finished = 0;
  run_tasks(tasks, options.jobs, [&](const TaskResult& result) {
    report.add(result);
    if (options.show_fingerprints) {
      std::printf("fingerprint %s %llu %016llx\n", result.task.scene->name(),
                  static_cast<unsigned long long>(result.task.seed),
                  static_cast<unsigned long long>(result.outcome.fingerprint));
    }
    if (++finished % 100 == 0) {
      std::printf("%llu of %llu worlds\n", static_cast<unsigned long long>(finished),
                  static_cast<unsigned long long>(tasks.size()));
      std::fflush(stdout);
    }
    return true;
  });
  return true;
}

int run(const Options& options) {
  Report report;
  if (!run_seeds(options, options.first_seed, options.seeds, report)) return 2;
  const bool complete = options.profile == "all" || options.profile.empty();
  return finish(report, complete && options.seeds >= 500, options.seeds);
}

/// Until a world fails as it is expected to: each failure is a line, the last one is the expected.
int run_until_expected(const Options& options) {
  std::vector<Task> tasks;
  for (uint64_t seed = options.first_seed; seed < options.first_seed + options.seeds; ++seed) {
    if (options.profile.empty()) {
      for (const Task& task : tasks_of_seed(seed)) tasks.push_back(task);
    }
    for (const Scene* scene : find_scenes(options.profile)) tasks.push_back({seed, scene});
  }
  const auto& expected = options.expected;
  bool seen = false;
  run_tasks(tasks, options.jobs, [&](const TaskResult& result) {
    if (result.outcome.ok) return true;
    print_failure(result, false);
    seen = std::find(expected.begin(), expected.end(), result.outcome.checker) != expected.end();
    return !seen;
  });
  return seen ? 0 : 1;
}

/// Batch after batch of seeds that were not run before, until the time is up.
int run_for_hours(const Options& options) {
  const auto begin = std::chrono::steady_clock::now();
  const std::chrono::duration<double, std::ratio<3600>> time(options.hours);
  std::printf("from seed %llu on, for %g h: --first-seed %llu repeats it\n",
              static_cast<unsigned long long>(options.first_seed), options.hours,
              static_cast<unsigned long long>(options.first_seed));
  Report report;
  uint64_t seeds = 0;
  do {
    constexpr uint64_t kBatch = 20;
    if (!run_seeds(options, options.first_seed + seeds, kBatch, report)) return 2;
    seeds += kBatch;
    std::printf("%llu seeds\n", static_cast<unsigned long long>(seeds));
    std::fflush(stdout);
  } while (std::chrono::steady_clock::now() - begin < time);
  return finish(report, false, seeds);
}

/// The worlds that a file lists: a seed and a profile a line, and why they are there.
int run_listed(const Options& options) {
  std::ifstream file(options.worlds);
  if (!file) {
    std::fprintf(stderr, "rnic-sim: cannot read '%s'\n", options.worlds.c_str());
    return 2;
  }
  std::vector<Task> tasks;
  for (std::string line; std::getline(file, line);) {
    if (line.empty() || line[0] == '#') continue;
    std::istringstream fields(line);
    uint64_t seed = 0;
    std::string profile;
    std::string reason;
    fields >> seed >> profile >> reason;
    const auto found = find_scenes(profile);
    if (!fields || found.size() != 1) {
      std::fprintf(stderr, "rnic-sim: %s: '%s' is no seed, profile and reason\n",
                   options.worlds.c_str(), line.c_str());
      return 2;
    }
    tasks.push_back({seed, found[0]});
  }
  Report report;
  run_tasks(tasks, options.jobs, [&](const TaskResult& result) {
    report.add(result);
    return true;
  });
  return finish(report, false, tasks.size());
}

int finish(const Status& status) {
  if (status) return 0;
  std::fprintf(stderr, "rnic-sim: %s\n", status.error().message.c_str());
  return 2;
}

FingerprintList take_fingerprints(const Options& options, const std::vector<Task>& tasks,
                                  Report& report) {
  FingerprintList list;
  run_tasks(tasks, options.jobs, [&](const TaskResult& result) {
    report.add(result);
    if (result.outcome.ok) list.note(result);
    return true;
  });
  return list;
}

/// Writes what the worlds of some seeds look like, those left out in which something is wrong.
int accept_fingerprints(const Options& options) {
  std::vector<Task> tasks;
  for (uint64_t i = 0; i < options.seeds; ++i) {
    const std::vector<Task> chosen = choose(options, options.first_seed + i);
    if (chosen.empty()) return 2;  // the file stays as it is
    tasks.insert(tasks.end(), chosen.begin(), chosen.end());
  }
  Report report;
  const FingerprintList list = take_fingerprints(options, tasks, report);
  const int written = finish(list.write(options.fingerprints));
  const int status = finish(report, false, options.seeds);
  return written != 0 ? written : status;
}

/// Says which worlds of the seeds do not look as the file says.
int compare_fingerprints(const Options& options) {
  auto known = FingerprintList::read(options.fingerprints);
  if (!known) return finish(tl::make_unexpected(known.error()));
  known->keep(options.first_seed, options.seeds);
  if (known->tasks().empty()) {
    std::fprintf(stderr, "rnic-sim: '%s' names no world of these seeds\n",
                 options.fingerprints.c_str());
    return 2;
  }
  Report report;
  const FingerprintList list = take_fingerprints(options, known->tasks(), report);
  const uint64_t differences = known->print_differences(list);
  std::printf("%zu worlds, %llu look different from what '%s' tells%s\n", known->tasks().size(),
              static_cast<unsigned long long>(differences), options.fingerprints.c_str(),
              differences == 0 ? "" : ": where that is meant, ./scripts/sim --accept-fingerprints");
  return differences == 0 && report.failures() == 0 ? 0 : 1;
}

uint64_t drawn_seed() {
  std::random_device device;
  return (uint64_t{device()} << 32 | device()) % 1'000'000'000'000;
}

int run(int argc, char** argv) {
  Options options;
  CLI::App app{
      "Seeded worlds in virtual time, two of each seed: two soft RNICs, and streams of TCP alone. "
      "Every octet, completion, segment and buffer is checked.\nExit status: 0 no failure, 1 "
      "failures, 2 usage or environment."};
  app.add_option("--seeds", options.seeds, "seeds to run")
      ->capture_default_str()
      ->check(CLI::Range(uint64_t{1}, uint64_t{1'000'000'000}));
  auto* first = app.add_option("--first-seed", options.first_seed, "seed of the first world")
                    ->capture_default_str();
  auto* hours =
      app.add_option("--hours", options.hours,
                     "go on with new seeds until the time is up; from a drawn seed, which is "
                     "printed, where --first-seed names none")
          ->check(CLI::Range(0.0, 10'000.0));
  app.add_option("--worlds", options.worlds,
                 "run the worlds of a file: a line each, seed, profile, why it is listed");
  app.add_option("--profile", options.profile,
                 "run every seed in this profile, in the next one of those that match a pattern "
                 "such as 'tcp-*' (see --list), or in 'all' of them");
  auto* replayed = app.add_option("--replay", options.replay,
                                  "run one seed, write its trace and captures under --out");
  app.add_option("--jobs", options.jobs, "processes")
      ->capture_default_str()
      ->check(CLI::Range(1, 256));
  app.add_option("--out", options.out, "folder for what a replay writes")->capture_default_str();
  app.add_option("--expect", options.expected,
                 "run the seeds until one of these checkers fails a world (names, with commas "
                 "between them), with --profile in all that match; exit status 0 when one does, 1 "
                 "when none does: ./scripts/sim --sabotage asks so after each defect")
      ->delimiter(',');
  auto* fingerprints = app.add_option("--fingerprints", options.fingerprints,
                                      "run those worlds of a file that --seeds names, and say "
                                      "which of them do not look as it tells: profile, seed and "
                                      "fingerprint a line");
  app.add_flag("--accept", options.accept,
               "write the file of --fingerprints, with the worlds of --seeds and --profile")
      ->needs(fingerprints);
  app.add_flag("--show-fingerprints", options.show_fingerprints,
               "print the fingerprint of each world: a number over all that it shows");
  app.add_flag("--twins", options.twins,
               "run each world of devices once more without fast paths: frames, completions and "
               "counters must be the same");
  app.add_flag("--list", options.list, "list the profiles");
  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError& error) {
    return app.exit(error) == 0 ? 0 : 2;
  }
  base::set_log_level(base::LogLevel::Off);
  if (options.list) return list_profiles();
  if (!options.expected.empty()) return run_until_expected(options);
  if (replayed->count() != 0) return replay(options);
  if (!options.fingerprints.empty()) {
    return options.accept ? accept_fingerprints(options) : compare_fingerprints(options);
  }
  if (!options.worlds.empty()) return run_listed(options);
  if (hours->count() == 0) return run(options);
  if (first->count() == 0) options.first_seed = drawn_seed();
  return run_for_hours(options);
}

}  // namespace

int main(int argc, char** argv) {
  return program::run("rnic-sim", [&] { return run(argc, argv); });
}

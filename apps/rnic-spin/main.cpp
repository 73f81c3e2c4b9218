// rnic-spin: random calls of the verbs, from a seed, held against a model.

#include <unistd.h>

#include <CLI/CLI.hpp>
#include <chrono>
#include <cstdio>
#include <iostream>
#include <string>
#include <vector>

#include "program/program.hpp"
#include "rnic-spin/blocks.hpp"
#include "rnic-spin/spinner.hpp"
#include "workload/command_line.hpp"

namespace rnic::spin {

namespace {

constexpr int kOk = 0;
constexpr int kBroken = 1;
constexpr int kUsage = 2;
constexpr uint64_t kStepsBetweenBlocks = 20;  // which take their time

struct Options {
  uint64_t seed = 1;
  uint64_t steps = 100000;
  double seconds = 0;  // 0: so many steps
  std::string port = "wire";
  bool threaded = false;
  bool verbose = false;
  std::vector<std::string> overrides;
};

int complain(const Error& error) {
  std::cerr << "rnic-spin: " << error.message << "\n";
  return kUsage;
}

/// Two devices at loopback addresses of this process's own: several may run at once.
/// \param which of its contexts they are for
std::string socket_devices(int which) {
  const auto pid = static_cast<unsigned>(getpid());
  const std::string prefix =
      "127." + std::to_string(1 + (pid >> 8) % 250) + "." + std::to_string(pid % 256) + ".";
  std::string text;
  for (const char* end : {"0", "1"}) {
    text += "[[device]]\nname = \"rnic" + std::string(end) + "\"\nport = \"socket\"\naddress = \"" +
            prefix + std::to_string(which) + end + "/8\"\n";
  }
  return text;
}

Config config_of(const Options& options, int which) {
  Config config = options.port == "socket"
                      ? Config::from_text(socket_devices(which), "the sockets of rnic-spin")
                      : Config::loopback();
  if (options.threaded) config.set("worker.mode=threaded");
  for (const std::string& one : options.overrides) config.set(one);
  return config;
}

std::string command_of(const Options& options, uint64_t steps) {
  std::string command = "rnic-spin --seed " + std::to_string(options.seed) + " --steps " +
                        std::to_string(steps) + " --port " + options.port;
  if (options.threaded) command += " --threaded";
  for (const std::string& one : options.overrides) command += " --set " + one;
  return command;
}

void print_counts(const Judge& judge) {
  for (const auto& [what, count] : judge.counts()) {
    std::printf("%10llu %s\n", static_cast<unsigned long long>(count), what.c_str());
  }
}

int report_violation(const Options& options, const Judge& judge, uint64_t steps,
                     const std::string& what) {
  std::cerr << "the last answers, completions and events:\n";
  for (const std::string& line : judge.history()) std::cerr << "  " << line << "\n";
  std::cerr << "rnic-spin: step " << steps << ": " << what << "\nagain with: "
            << command_of(options, steps) << "\n";
  return kBroken;
}

int spin(Context& context, Context& waiting, const Options& options) {
  Spinner spinner(context, options.seed);
  Blocks blocks(waiting, options.seed, spinner.judge());
  const auto until = std::chrono::steady_clock::now() +
                     std::chrono::duration_cast<std::chrono::nanoseconds>(
                         std::chrono::duration<double>(options.seconds));
  uint64_t steps = 0;
  const auto done = [&] {
    if (options.seconds > 0) return std::chrono::steady_clock::now() >= until;
    return steps >= options.steps;
  };
  try {
    if (Status status = spinner.start(); !status) return complain(status.error());
    if (Status status = blocks.start(); !status) return complain(status.error());
    for (; !done(); ++steps) {
      spinner.step();
      if (steps % kStepsBetweenBlocks == 0) blocks.step();
    }
    spinner.finish();
    blocks.finish();
  } catch (const Violation& violation) {
    return report_violation(options, spinner.judge(), steps, violation.what());
  }
  if (options.verbose) print_counts(spinner.judge());
  std::printf("%llu steps, nothing wrong; seed %llu\n", static_cast<unsigned long long>(steps),
              static_cast<unsigned long long>(options.seed));
  return kOk;
}

int run(int argc, char** argv) {
  Options options;
  CLI::App app{
      "Makes, uses and ends consumers, domains, regions, windows, queues, queue pairs,\n"
      "connections, reserved ports, streams and framed streams, in an order that a seed says, on\n"
      "two devices of this process, and calls that wait on two others; and holds answers,\n"
      "completions, events and memory against what they may be. Ends with status 1 at the first\n"
      "that is wrong. Examples:\n"
      "  rnic-spin --steps 1000000\n"
      "  rnic-spin --seconds 600 --seed 7 --threaded\n"
      "  rnic-spin --port socket"};
  app.add_option("--seed", options.seed,
                 "says what is called; what is answered depends on the time, too")
      ->capture_default_str();
  app.add_option("--steps", options.steps, "how many")->capture_default_str();
  app.add_option("--seconds", options.seconds, "how long, instead of --steps")
      ->check(CLI::Range(0.1, 86400.0))
      ->check(workload::a_number());
  app.add_option("--port", options.port, "wire (in memory), or socket (of the system)")
      ->capture_default_str()
      ->check(CLI::IsMember({"wire", "socket"}));
  app.add_flag("--threaded", options.threaded, "the devices have workers");
  app.add_flag("--verbose", options.verbose, "print how often each answer came");
  app.add_option("--set", options.overrides, "override one key of the configuration")
      ->allow_extra_args(false);
  if (auto status = workload::parse_command_line(app, "rnic-spin", argc, argv)) return *status;
  auto context = Context::open(config_of(options, 1));
  if (!context) return complain(context.error());
  auto waiting = Context::open(config_of(options, 2));
  if (!waiting) return complain(waiting.error());
  return spin(*context, *waiting, options);
}

}  // namespace
}  // namespace rnic::spin

int main(int argc, char** argv) {
  return rnic::program::run("rnic-spin", [&] { return rnic::spin::run(argc, argv); });
}

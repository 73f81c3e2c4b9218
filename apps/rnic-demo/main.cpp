// rnic-demo: the command line and the verdict.

#include <CLI/CLI.hpp>
#include <algorithm>
#include <iostream>
#include <optional>
#include <random>

#include "program/program.hpp"
#include "rnic-demo/demo.hpp"
#include "workload/command_line.hpp"

namespace rnic::demo {

namespace {

constexpr int kOk = 0;
constexpr int kNotVerified = 1;
constexpr int kUsage = 2;

bool write_file(const std::string& path, const std::string& content) {
  const auto why = program::write_file(path, content);
  if (why) std::cerr << "rnic-demo: " << *why << "; choose a place you may write to\n";
  return !why;
}

int verdict(const Campaign& campaign) {
  uint64_t placed = 0;
  uint64_t dropped = 0;
  size_t unverified = 0;
  uint64_t atomics = 0;
  uint64_t immediates = 0;
  for (const Run& run : campaign.runs) {
    if (!run.verified) ++unverified;
    if (run.verified && workload::is_atomic(run.operation)) atomics += run.messages;
    if (run.verified && workload::has_immediate(run.operation)) immediates += run.messages;
    if (run.wire != Wire::Hostile) continue;
    placed += run.ooo_placed_octets;
    dropped += run.crc_drops;
  }
  std::cout << campaign.runs.size() << " runs, " << campaign.runs.size() - unverified
            << " verified; hostile wire: " << placed << " octets placed out of order, " << dropped
            << " segments dropped by CRC\n"
            << atomics << " atomics, each with the value that was there and the value it left, and "
            << immediates << " Immediate Data verified\n";
  const auto is_starved = [](const Run& run) { return run.starved; };
  const auto starved = static_cast<size_t>(std::ranges::count_if(campaign.runs, is_starved));
  if (starved != 0 && starved == unverified) {
    std::cerr << "rnic-demo: not tried for want of memory: "
              << std::ranges::find_if(campaign.runs, is_starved)->error << "\n";
    return kUsage;
  }
  if (unverified != 0 || !campaign.complete) return kNotVerified;
  if (placed != 0 && dropped != 0) return kOk;
  std::cerr
      << "rnic-demo: the hostile wire exercised nothing: out-of-order placement and CRC drops "
         "must both have happened\n";
  return kNotVerified;
}

constexpr uint64_t kLargestSeed = INT64_MAX;  // as in the configuration

uint64_t drawn_seed() {
  std::random_device system;
  return (uint64_t{system()} << 32 | system()) & kLargestSeed;
}

int run(int argc, char** argv) {
  std::string json_file;
  std::string report_file = "out/demo/report.html";
  uint32_t largest = 26;
  std::optional<uint64_t> given_seed;
  CLI::App app{
      "Two soft RNICs in one process, wired by memory rings, move data by Send, Write, Read and\n"
      "Immediate Data and carry out atomics, on a clean and on a hostile wire, and verify every\n"
      "octet and value. Exit status: 0 ok, 1 something was not verified, 2 usage or environment.\n"
      "Example: rnic-demo --largest 20 --json out/demo/result.json"};
  app.add_option("--json", json_file, "write the results to this file as JSON");
  app.add_option("--report", report_file, "where the page goes")->capture_default_str();
  app.add_option("--largest", largest, "sizes up to 2^N octets")
      ->capture_default_str()
      ->check(CLI::Range(6, 26));
  app.add_option("--seed", given_seed, "of contents and impairments; else one is drawn and told")
      ->check(CLI::Range(uint64_t{0}, kLargestSeed));
  if (auto status = workload::parse_command_line(app, "rnic-demo", argc, argv)) return *status;
  const uint64_t seed = given_seed ? *given_seed : drawn_seed();
  std::cerr << "rnic-demo: --seed " << seed << "\n";
  Campaign campaign;
  if (Status status = run_campaign(uint64_t{1} << largest, seed, campaign); !status) {
    std::cerr << "rnic-demo: " << status.error().message << "\n";
    return workload::is_of_environment(status.error()) ? kUsage : kNotVerified;
  }
  print_table(campaign);
  if (!write_file(report_file, to_html(campaign))) return kUsage;
  std::cout << "report: " << report_file << "\n";
  if (!json_file.empty() && !write_file(json_file, to_json(campaign) + "\n")) return kUsage;
  return verdict(campaign);
}

}  // namespace
}  // namespace rnic::demo

int main(int argc, char** argv) {
  return rnic::program::run("rnic-demo", [&] { return rnic::demo::run(argc, argv); });
}

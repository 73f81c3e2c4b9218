// rnic-experiment: the command line, and where the results go.

#include <CLI/CLI.hpp>
#include <chrono>
#include <filesystem>
#include <iostream>
#include <optional>
#include <random>

#include "experiments.hpp"
#include "program/program.hpp"

namespace rnic::experiment {

namespace {

constexpr int kOk = 0;
constexpr int kIncomplete = 1;
constexpr int kUsage = 2;

struct Entry {
  const char* name;
  Experiment (*run)(const Options&);
};
constexpr Entry kEntries[] = {{"packing", packing},
                              {"receive-buffer", receive_buffer},
                              {"key-mode", key_mode},
                              {"wire-efficiency", wire_efficiency},
                              {"half-segments", half_segments},
                              {"alignment", alignment},
                              {"enablement", enablement}};

bool write_file(const std::filesystem::path& path, const std::string& content) {
  const auto why = program::write_file(path.string(), content);
  if (why) std::cerr << "rnic-experiment: " << *why << "; choose another place (--out)\n";
  return !why;
}

/// Nothing that was to arrive is missing.
bool complete(const Experiment& experiment) {
  for (const Table& table : experiment.tables) {
    for (const auto& row : table.rows) {
      for (const std::string& cell : row) {
        if (cell == "NO" || cell == "incomplete") return false;
      }
    }
  }
  return true;
}

int run(int argc, char** argv) {
  std::string only;
  std::string out = "out/experiments";
  std::string docs;
  std::optional<uint64_t> given_seed;
  Options options;
  bool quick = false;
  bool full = false;
  CLI::App app{
      "The analysis draft (draft-elzur-iwarp-mpa-tcp-analysis-00) as experiments, in virtual time: "
      "the same\nfigures on any machine from the same seed. Writes report.html and a CSV file for "
      "each table.\n"
      "Exit status: 0 done, 1 something did not arrive, 2 usage or environment.\n"
      "Example: rnic-experiment --only packing --quick"};
  std::vector<std::string> names;
  for (const Entry& entry : kEntries) names.emplace_back(entry.name);
  app.add_option("--only", only, "one of them")->check(CLI::IsMember(names));
  app.add_option("--seed", given_seed,
                 "of the first run of what chance decides; else one is drawn and told");
  app.add_option("--seeds", options.seeds, "runs of what chance decides; means are reported")
      ->capture_default_str()
      ->check(CLI::Range(1, 100));
  app.add_option("--out", out, "where the results go")->capture_default_str();
  app.add_flag("--quick", quick, "seconds: a look whether all is well");
  app.add_flag("--full", full, "larger and finer")->excludes("--quick");
  app.add_option("--docs", docs, "write the page of the documentation to this file");
  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError& error) {
    return app.exit(error) == 0 ? kOk : kUsage;
  }
  if (quick) options.extent = Extent::Quick;
  if (full) options.extent = Extent::Full;
  options.seed = given_seed ? *given_seed : std::random_device()();
  std::cout << "--seed " << options.seed << "\n";
  const std::filesystem::path folder(out);
  std::vector<Experiment> experiments;
  bool all_complete = true;
  for (const Entry& entry : kEntries) {
    if (!only.empty() && only != entry.name) continue;
    const auto begin = std::chrono::steady_clock::now();
    experiments.push_back(entry.run(options));
    const Experiment& e = experiments.back();
    const std::chrono::duration<double> took = std::chrono::steady_clock::now() - begin;
    std::cout << e.title << " (" << number(took.count(), 1) << " s)\n";
    for (const std::string& finding : e.findings) std::cout << "  - " << finding << "\n";
    if (!complete(e)) {
      std::cout << "  ! something did not arrive\n";
      all_complete = false;
    }
    for (const Table& table : e.tables) {
      if (!write_file(folder / (table.name + ".csv"), to_csv(table))) return kUsage;
    }
  }
  std::string how = "Given by `./scripts/experiment";
  if (!only.empty()) how += " --only " + only;
  if (quick) how += " --quick";
  if (full) how += " --full";
  how +=
      " --seed " + std::to_string(options.seed) + "` with --seeds " + number(options.seeds) + ".";
  if (!write_file(folder / "report.html", to_html(experiments, how))) return kUsage;
  std::cout << "report: " << (folder / "report.html").string() << "\n";
  if (!docs.empty() && !write_file(docs, to_markdown(experiments, how))) return kUsage;
  return all_complete ? kOk : kIncomplete;
}

}  // namespace
}  // namespace rnic::experiment

int main(int argc, char** argv) {
  return rnic::program::run("rnic-experiment", [&] { return rnic::experiment::run(argc, argv); });
}

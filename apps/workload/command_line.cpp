#include "workload/command_line.hpp"

#include <algorithm>
#include <iostream>

namespace rnic::workload {

namespace {

std::string explain(const CLI::App& app, const CLI::ParseError& error) {
  std::string text = error.what();
  // CLI11 only says that a command is missing, even when there is one that it does not know.
  const std::vector<std::string> unknown = app.remaining();
  if (error.get_name() == "RequiredError" && !unknown.empty()) {
    std::string known;
    for (const CLI::App* command : app.get_subcommands(nullptr)) {
      known += (known.empty() ? "" : ", ") + command->get_name();
    }
    text = "unknown argument " + unknown.front() + ": give one of " + known;
  }
  std::replace(text.begin(), text.end(), '\n', ' ');
  return text + "; try --help";
}

}  // namespace

std::optional<int> parse_command_line(CLI::App& app, const std::string& program, int argc,
                                      char** argv) {
  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError& error) {
    if (error.get_exit_code() == 0) return app.exit(error, std::cout, std::cerr);
    std::cerr << program << ": " << explain(app, error) << "\n";
    return kUsageStatus;
  }
  return std::nullopt;
}

}  // namespace rnic::workload

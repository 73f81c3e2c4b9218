#include "workload/command_line.hpp"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <iostream>
#include <string_view>

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

std::optional<uint64_t> parse_octets(const std::string& text, uint64_t most) {
  const char* end = text.data() + text.size();
  uint64_t value = 0;
  const auto parsed = std::from_chars(text.data(), end, value);
  if (parsed.ec != std::errc{}) return std::nullopt;
  std::string_view unit(parsed.ptr, static_cast<size_t>(end - parsed.ptr));
  if (unit.size() == 2 && unit[1] == 'B') unit.remove_suffix(1);
  constexpr std::string_view kUnits = "KMG";
  const size_t which = unit.size() == 1 ? kUnits.find(unit[0]) : kUnits.npos;
  if (!unit.empty() && which == kUnits.npos) return std::nullopt;
  const size_t shift = unit.empty() ? 0 : 10 * (which + 1);
  if (value > most >> shift) return std::nullopt;
  return value << shift;
}

CLI::Validator a_number() {
  return {[](std::string& text) {
            double value = 0;
            const bool read = CLI::detail::lexical_cast(text, value);
            return read && !std::isnan(value) ? std::string{} : text + " is not a number";
          },
          "", "number"};
}

CLI::Validator not_empty() {
  return {[](std::string& text) {
            return text.empty() ? std::string("is empty: leave the option out for its default")
                                : std::string{};
          },
          "", "not empty"};
}

}  // namespace rnic::workload

/// \file
/// Command lines: help to stdout, one line to stderr for what is wrong.
#pragma once

#include <CLI/CLI.hpp>
#include <cstdint>
#include <optional>
#include <string>

namespace rnic::workload {

/// Exit status for a wrong command line or environment.
inline constexpr int kUsageStatus = 2;

/// Parses the command line. \return the exit status to end with, or nothing: go on.
std::optional<int> parse_command_line(CLI::App& app, const std::string& program, int argc,
                                      char** argv);

/// "64", "4K", "1MB", "1G": octets; nothing for what is none, or above `most`.
[[nodiscard]] std::optional<uint64_t> parse_octets(const std::string& text, uint64_t most);

/// Beside CLI::Range, which "nan" passes.
[[nodiscard]] CLI::Validator a_number();
/// For what a script may give by an empty variable: nothing said is no choice.
[[nodiscard]] CLI::Validator not_empty();

}  // namespace rnic::workload

/// \file
/// Command lines: help to stdout, one line to stderr for what is wrong.
#pragma once

#include <CLI/CLI.hpp>
#include <optional>
#include <string>

namespace rnic::workload {

/// Exit status for a wrong command line or environment.
inline constexpr int kUsageStatus = 2;

/// Parses the command line. \return the exit status to end with, or nothing: go on.
std::optional<int> parse_command_line(CLI::App& app, const std::string& program, int argc,
                                      char** argv);

}  // namespace rnic::workload

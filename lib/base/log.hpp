/// \file
/// The log: spdlog behind three functions, so that its headers stay in one translation unit.
/// Never called on the per-packet path; per-connection events and errors only.
#pragma once

#include <cstdint>
#include <string_view>

namespace rnic::base {

enum class LogLevel : uint8_t { Debug, Info, Warning, Error, Off };

/// Lines below `level` are dropped. Lines go to stderr. Default: Warning.
void set_log_level(LogLevel level);
[[nodiscard]] bool log_enabled(LogLevel level);
/// One line; thread-safe. `layer` names the room that speaks: "tcp", "mpa", ...
void log(LogLevel level, std::string_view layer, std::string_view message);

}  // namespace rnic::base

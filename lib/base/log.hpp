/// \file
/// The log: spdlog behind three functions, so that its headers stay in one translation unit.
/// Never called on the per-packet path; per-connection events and errors only.
#pragma once

#include <concepts>
#include <cstdint>
#include <string>
#include <string_view>

#include "base/starved.hpp"

namespace rnic::base {

enum class LogLevel : uint8_t { Debug, Info, Warning, Error, Off };

/// Lines below `level` are dropped. Lines go to stderr. Default: Warning.
void set_log_level(LogLevel level) noexcept;
[[nodiscard]] bool log_enabled(LogLevel level) noexcept;
/// In a child behind a fork, before it logs: a thread that it does not have may hold the log's lock
/// for ever, so it gets a lock of its own. The level stays. Takes no memory and no lock.
void renew_log() noexcept;
/// One line; thread-safe. `layer` names the room that speaks: "tcp", "mpa", ... It is lost where
/// the machine has no memory for it.
void log(LogLevel level, std::string_view layer, std::string_view message) noexcept;

/// Logs a line that `make` puts together only if it is wanted.
template <std::invocable F>
void log(LogLevel level, std::string_view layer, F&& make) {
  const bool written = attempt([&] {
    if (log_enabled(level)) log(level, layer, std::string_view(make()));
  });
  static_cast<void>(written);  // there is nobody to tell
}

/// A line that is put together before it is known whether there is memory for it: what throws here
/// may throw in a destructor, on a worker's thread, or between two halves of a change.
template <std::same_as<std::string> S>
void log(LogLevel level, std::string_view layer, S&& message) = delete;

}  // namespace rnic::base

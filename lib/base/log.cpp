#include "base/log.hpp"

#include <spdlog/sinks/stdout_color_sinks.h>
#include <spdlog/spdlog.h>

namespace rnic::base {

namespace {

spdlog::logger& logger() {
  static const std::shared_ptr<spdlog::logger> instance = [] {
    auto made = std::make_shared<spdlog::logger>(
        "rnic", std::make_shared<spdlog::sinks::stderr_color_sink_mt>());
    made->set_pattern("%H:%M:%S.%e %^%l%$ %v");
    made->set_level(spdlog::level::warn);
    return made;
  }();
  return *instance;
}

spdlog::level::level_enum to_spdlog(LogLevel level) {
  switch (level) {
    case LogLevel::Debug: return spdlog::level::debug;
    case LogLevel::Info: return spdlog::level::info;
    case LogLevel::Warning: return spdlog::level::warn;
    case LogLevel::Error: return spdlog::level::err;
    case LogLevel::Off: return spdlog::level::off;
  }
  return spdlog::level::off;
}

}  // namespace

void set_log_level(LogLevel level) { logger().set_level(to_spdlog(level)); }

bool log_enabled(LogLevel level) { return logger().should_log(to_spdlog(level)); }

void log(LogLevel level, std::string_view layer, std::string_view message) noexcept {
  const bool written = attempt([&] { logger().log(to_spdlog(level), "{}: {}", layer, message); });
  static_cast<void>(written);  // there is nobody to tell
}

}  // namespace rnic::base

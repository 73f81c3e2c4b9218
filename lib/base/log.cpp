#include "base/log.hpp"

#include <spdlog/sinks/base_sink.h>
#include <spdlog/sinks/stdout_color_sinks.h>
#include <spdlog/spdlog.h>

#include <atomic>
#include <memory>
#include <utility>

namespace rnic::base {

namespace {

/// The coloured sink behind a lock of its own: spdlog's has one lock for the whole process, which
/// a child could not replace.
class StderrSink final : public spdlog::sinks::base_sink<std::mutex> {
 protected:
  void sink_it_(const spdlog::details::log_msg& message) override { colored_.log(message); }
  void flush_() override { colored_.flush(); }
  void set_pattern_(const std::string& pattern) override { colored_.set_pattern(pattern); }
  void set_formatter_(std::unique_ptr<spdlog::formatter> formatter) override {
    colored_.set_formatter(std::move(formatter));
  }

 private:
  spdlog::sinks::stderr_color_sink_st colored_;
};

/// Made when it is first asked for, and never destroyed: others log until the very end.
struct Log {
  spdlog::logger logger{"rnic", std::make_shared<StderrSink>()};
  Log* parents = nullptr;  // of the process that this one was forked from
};

std::atomic<Log*> current{nullptr};
std::atomic<Log*> of_parent{nullptr};
std::atomic<spdlog::level::level_enum> least{spdlog::level::warn};

spdlog::logger& logger() {
  Log* there = current.load(std::memory_order_acquire);
  if (there != nullptr) return there->logger;
  auto made = std::make_unique<Log>();
  made->logger.set_pattern("%H:%M:%S.%e %^%l%$ %v");
  made->logger.set_level(spdlog::level::trace);  // log() drops what is below `least`
  made->parents = of_parent.load();
  if (!current.compare_exchange_strong(there, made.get())) return there->logger;
  return made.release()->logger;
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

void set_log_level(LogLevel level) noexcept { least.store(to_spdlog(level)); }

bool log_enabled(LogLevel level) noexcept { return to_spdlog(level) >= least.load(); }

void renew_log() noexcept {
  Log* const before = current.exchange(nullptr);
  if (before != nullptr) of_parent.store(before);
}

void log(LogLevel level, std::string_view layer, std::string_view message) noexcept {
  if (!log_enabled(level)) return;
  const bool written = attempt([&] { logger().log(to_spdlog(level), "{}: {}", layer, message); });
  static_cast<void>(written);  // there is nobody to tell
}

}  // namespace rnic::base

/// \file
/// The second thread of a measurement, on a core of its own.
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <thread>
#include <utility>

#include "rnic-perf/processor_time.hpp"

namespace rnic::perf {

/// Moves the calling thread to a core.
void pin(uint32_t core);

/// Calls `turn` again and again, on its core and known to DPDK, as long as it lives.
class SecondCore {
 public:
  SecondCore(uint32_t core, std::function<void()> turn)
      : turn_(std::move(turn)), thread_([this, core] { work(core); }) {}
  ~SecondCore();
  SecondCore(const SecondCore&) = delete;
  SecondCore& operator=(const SecondCore&) = delete;

  /// Processor time of its thread.
  [[nodiscard]] int64_t processor_time_ns() {
    return perf::processor_time_ns(thread_.native_handle());
  }

 private:
  void work(uint32_t core);

  std::function<void()> turn_;
  std::atomic<bool> stop_{false};
  std::thread thread_;
};

}  // namespace rnic::perf

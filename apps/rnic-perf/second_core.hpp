/// \file
/// The second thread of a measurement, on a core of its own.
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <thread>
#include <utility>

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

 private:
  void work(uint32_t core);

  std::function<void()> turn_;
  std::atomic<bool> stop_{false};
  std::thread thread_;
};

}  // namespace rnic::perf

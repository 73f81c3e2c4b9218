#include "dpdk/interrupt_thread.hpp"

#include <rte_alarm.h>

#include <atomic>
#include <chrono>
#include <cstdint>
#include <thread>

namespace rnic::dpdk {

bool drain_interrupt_thread() {
  // An alarm runs in that thread, after the events that were pending before it. The counter
  // outlives the call, as a late alarm still writes it.
  static std::atomic<uint64_t> served{0};
  const uint64_t before = served.load();
  const auto reached = [](void*) { served.fetch_add(1); };
  if (rte_eal_alarm_set(1, reached, nullptr) != 0) return false;
  for (int i = 0; i < 10000; ++i) {
    if (served.load() != before) return true;
    std::this_thread::sleep_for(std::chrono::microseconds(100));
  }
  return false;
}

}  // namespace rnic::dpdk

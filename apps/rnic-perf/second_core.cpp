#include "rnic-perf/second_core.hpp"

#include <pthread.h>
#include <sched.h>

#include "dpdk/eal.hpp"

namespace rnic::perf {

void pin(uint32_t core) {
  cpu_set_t set;
  CPU_ZERO(&set);
  CPU_SET(core, &set);
  pthread_setaffinity_np(pthread_self(), sizeof set, &set);
}

SecondCore::~SecondCore() {
  stop_.store(true);
  thread_.join();
}

/// A thread that DPDK does not know has no cache of packet buffers: each burst of them would come
/// from the pool that all cores share.
void SecondCore::work(uint32_t core) {
  pin(core);
  const bool registered = dpdk::Eal::started() && dpdk::Eal::register_thread().has_value();
  while (!stop_.load(std::memory_order_relaxed)) turn_();
  if (registered) dpdk::Eal::unregister_thread();
}

}  // namespace rnic::perf

#include "dpdk/burst_gate.hpp"

#include <dlfcn.h>
#include <rte_interrupts.h>

#include <algorithm>
#include <chrono>
#include <mutex>
#include <thread>
#include <vector>

namespace rnic::dpdk {
namespace {

/// All gates of the process. The object outlives them, as DPDK's thread does.
struct Gates {
  std::mutex mutex;
  std::vector<BurstGate*> all;
  std::atomic<uint32_t> waiting{0};
};

Gates& gates() {
  static auto* made = new Gates;
  return *made;
}

}  // namespace

BurstGate::BurstGate() {
  const std::lock_guard lock(gates().mutex);
  gates().all.push_back(this);
}

BurstGate::~BurstGate() {
  const std::lock_guard lock(gates().mutex);
  std::erase(gates().all, this);
}

void BurstGate::wait_for_bursts() {
  std::atomic_thread_fence(std::memory_order_seq_cst);
  const std::lock_guard lock(gates().mutex);
  ++gates().waiting;
  for (const BurstGate* gate : gates().all) {
    // This takes microseconds, unless the thread was suspended in the middle of its burst.
    while (gate->inside_.load(std::memory_order_acquire)) {
      std::this_thread::sleep_for(std::chrono::microseconds(20));
    }
  }
  --gates().waiting;
}

uint32_t BurstGate::waiting() { return gates().waiting.load(); }

}  // namespace rnic::dpdk

// The program's own function takes precedence over a shared library's of the same name, also for
// plugins that are loaded later. A polling thread may call it, too, when it closes its port: it is
// inside no gate then, and waits only for others.
extern "C" int rte_intr_callback_unregister(const rte_intr_handle* intr_handle,
                                            rte_intr_callback_fn cb, void* cb_arg) {
  static const auto of_dpdk = reinterpret_cast<decltype(&rte_intr_callback_unregister)>(
      dlsym(RTLD_NEXT, "rte_intr_callback_unregister"));
  const int left = of_dpdk(intr_handle, cb, cb_arg);
  rnic::dpdk::BurstGate::wait_for_bursts();
  return left;
}

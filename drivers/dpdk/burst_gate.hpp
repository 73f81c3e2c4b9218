/// \file
/// Keeps DPDK's interrupt thread from unmapping memory that a burst uses; private to the driver.
#pragma once

#include <atomic>
#include <cstdint>

namespace rnic::dpdk {

/// The gate of one net_memif port, whose peer may hang up at any time. DPDK's interrupt thread then
/// marks the connection as gone, unregisters its events and unmaps the shared memory, even if a
/// burst is using it, which would end the process. So the thread has to wait where it unregisters:
/// burst_gate.cpp has its own rte_intr_callback_unregister() in front of DPDK's. A burst that
/// begins later sees the mark and touches nothing.
///
/// Threads: one thread at a time passes the gate; any thread may wait.
class BurstGate {
 public:
  BurstGate();
  ~BurstGate();
  BurstGate(const BurstGate&) = delete;
  BurstGate& operator=(const BurstGate&) = delete;

  /// Lives as long as a burst. \param gate nullptr: the device needs none
  class Pass {
   public:
    explicit Pass(BurstGate* gate) : gate_(gate) {
      // Before the burst reads the mark: the thread that sets it reads this afterwards.
      if (gate_ != nullptr) gate_->inside_.store(true, std::memory_order_seq_cst);
    }
    ~Pass() {
      if (gate_ != nullptr) gate_->inside_.store(false, std::memory_order_release);
    }
    Pass(const Pass&) = delete;
    Pass& operator=(const Pass&) = delete;

   private:
    BurstGate* gate_;
  };

  /// Waits until each burst that is under way has ended.
  static void wait_for_bursts();
  /// The number of threads that wait now.
  [[nodiscard]] static uint32_t waiting();

 private:
  std::atomic<bool> inside_{false};
};

}  // namespace rnic::dpdk

#include "dpdk/memif_redial.hpp"

#include <rte_ethdev.h>

#include "dpdk/burst_gate.hpp"
#include "dpdk/interrupt_thread.hpp"
#include "dpdk/log_capture.hpp"

namespace rnic::dpdk {

void MemifRedial::looked(bool up) {
  looks_ = up ? 0 : looks_ + 1;
  if (looks_ < kLooksBetween) return;
  looks_ = 0;
  redial();
}

/// What net_memif does about the former connection is over before ours begins: both its thread and
/// this one would give the same memory back otherwise.
void MemifRedial::redial() {
  const LogCapture capture;  // that nobody listens is told as a link that is down
  drain_interrupt_thread();
  if (!is_stopped()) {
    stopped_.store(true, std::memory_order_seq_cst);
    BurstGate::wait_for_bursts();  // of other queues; those that begin later see the mark
    rte_eth_dev_stop(id_);
  }
  stopped_.store(rte_eth_dev_start(id_) != 0, std::memory_order_release);
}

}  // namespace rnic::dpdk

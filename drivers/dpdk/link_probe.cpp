#include "dpdk/link_probe.hpp"

#include <rte_ethdev.h>

#include <cerrno>
#include <thread>
#include <utility>

namespace rnic::dpdk {

using port::LinkState;

namespace {

int on_removal(uint16_t, rte_eth_event_type, void* probe, void*) {
  static_cast<LinkProbe*>(probe)->note_removal();
  return 0;
}

}  // namespace

LinkProbe::LinkProbe(uint16_t id, std::unique_ptr<KernelLink> kernel,
                     std::unique_ptr<MemifRedial> redial)
    : id_(id), kernel_(std::move(kernel)), redial_(std::move(redial)) {
  // Where DPDK has no memory for it ask() still learns of a removal from most drivers.
  static_cast<void>(rte_eth_dev_callback_register(id_, RTE_ETH_EVENT_INTR_RMV, &on_removal, this));
}

LinkProbe::~LinkProbe() {
  // Refused while it is being called.
  while (rte_eth_dev_callback_unregister(id_, RTE_ETH_EVENT_INTR_RMV, &on_removal, this) ==
         -EAGAIN) {
    std::this_thread::yield();
  }
}

LinkState LinkProbe::ask() {
  const std::lock_guard lock(mutex_);
  if (removed_.load(std::memory_order_acquire) || rte_eth_dev_is_removed(id_) != 0) {
    return LinkState::Gone;
  }
  if (kernel_ != nullptr) return kernel_->ask();
  rte_eth_link link{};
  if (rte_eth_link_get_nowait(id_, &link) != 0) return LinkState::Up;  // it has no way to tell
  const bool up = link.link_status == RTE_ETH_LINK_UP;
  if (redial_ != nullptr) redial_->looked(up);
  return up ? LinkState::Up : LinkState::Down;
}

}  // namespace rnic::dpdk

/// \file
/// The link of an ethdev; private to the driver.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <mutex>

#include "dpdk/kernel_link.hpp"
#include "dpdk/memif_redial.hpp"
#include "port/port.hpp"

namespace rnic::dpdk {

/// Asks a started device for its link and hears of its removal. Any thread may ask: the ports of a
/// device with several queues belong to several workers, and drivers need not bear two askers.
class LinkProbe {
 public:
  /// \param id of the device, which outlives it \param kernel nullptr: the driver is asked
  /// \param redial of a client of net_memif; nullptr: another device
  LinkProbe(uint16_t id, std::unique_ptr<KernelLink> kernel, std::unique_ptr<MemifRedial> redial);
  ~LinkProbe();
  LinkProbe(const LinkProbe&) = delete;
  LinkProbe& operator=(const LinkProbe&) = delete;

  [[nodiscard]] port::LinkState ask();
  /// \return whether the device is between two starts: its queues must not be used
  [[nodiscard]] bool is_stopped() const { return redial_ != nullptr && redial_->is_stopped(); }
  /// The driver says that the device was removed. DPDK's interrupt thread calls it.
  void note_removal() { removed_.store(true, std::memory_order_release); }

 private:
  const uint16_t id_;
  const std::unique_ptr<KernelLink> kernel_;
  const std::unique_ptr<MemifRedial> redial_;
  std::mutex mutex_;                   // one asker at a time
  std::atomic<bool> removed_ = false;  // the driver has said so
};

}  // namespace rnic::dpdk

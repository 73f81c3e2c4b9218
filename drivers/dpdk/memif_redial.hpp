/// \file
/// MemifRedial: has a net_memif client connect again; private to the driver.
#pragma once

#include <atomic>
#include <cstdint>

namespace rnic::dpdk {

/// A client of net_memif connects once, when its device starts. A server whose socket is there, but
/// whose device has not started, turns it away, and a server that has ended is not asked for again:
/// the link would be down for ever. So the device is started anew now and then while it is down.
///
/// Threads: looked() is called by one thread at a time; any thread may ask is_stopped().
class MemifRedial {
 public:
  /// Looks at a link that is down between two attempts: a start-up of net_memif takes several
  /// messages, and is not to be cut off.
  static constexpr uint32_t kLooksBetween = 5;

  /// \param id of the started device, which outlives it
  explicit MemifRedial(uint16_t id) : id_(id) {}

  /// The link was looked at. \param up as it was seen
  void looked(bool up);
  /// \return whether the device has not started again since it was stopped: nobody may use its
  /// queues
  [[nodiscard]] bool is_stopped() const { return stopped_.load(std::memory_order_seq_cst); }

 private:
  void redial();

  const uint16_t id_;
  uint32_t looks_ = 0;  // since the latest attempt
  std::atomic<bool> stopped_{false};
};

}  // namespace rnic::dpdk

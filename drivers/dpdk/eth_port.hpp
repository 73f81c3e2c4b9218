/// \file
/// A started ethdev as a port; private to the driver.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <utility>
#include <vector>

#include "dpdk/adoption.hpp"
#include "dpdk/burst_gate.hpp"
#include "dpdk/link_probe.hpp"
#include "dpdk/mbuf_frames.hpp"
#include "dpdk/packet_ring.hpp"
#include "dpdk/tap_queue.hpp"
#include "dpdk/transmit_watch.hpp"
#include "port/port.hpp"

struct rte_mempool;
struct rte_mbuf;

namespace rnic::dpdk {

/// Stops and closes the device; also removes it from its bus if `unplug`.
void close_device(uint16_t id, bool unplug);

/// An opened device, closed when the last of its ports is gone.
class OpenDevice {
 public:
  /// Made before the device is opened, so that nothing between the two can fail.
  OpenDevice() = default;
  ~OpenDevice() {
    probe_.reset();  // DPDK calls it while there is a device
    if (owns_) close_device(id_, unplug_);
  }
  /// \param unplug we plugged it, so we unplug it
  void own(uint16_t id, bool unplug) {
    owns_ = true;
    id_ = id;
    unplug_ = unplug;
  }
  OpenDevice(const OpenDevice&) = delete;
  OpenDevice& operator=(const OpenDevice&) = delete;

  [[nodiscard]] uint16_t id() const { return id_; }
  /// See PortDescriptors::adopt(): the descriptors that opening the device has made.
  void adopt(PortDescriptors::Kind kind, const std::vector<int>& before) {
    descriptors_.adopt(kind, before);
  }
  /// The device has started: from now on link() has an answer.
  void set_probe(std::unique_ptr<LinkProbe> probe) { probe_ = std::move(probe); }
  /// See port::Port::link(). \return nothing: the device is memory
  [[nodiscard]] std::optional<port::LinkState> link() {
    if (probe_ == nullptr) return std::nullopt;
    return probe_->ask();
  }
  /// See LinkProbe::is_stopped().
  [[nodiscard]] bool is_stopped() const { return probe_ != nullptr && probe_->is_stopped(); }

 private:
  bool owns_ = false;
  uint16_t id_ = 0;
  bool unplug_ = false;
  PortDescriptors descriptors_;
  std::unique_ptr<LinkProbe> probe_;
};

/// The parts that make a started device a port.
struct EthPortSetup {
  std::shared_ptr<void> memory;  ///< owns the pool; outlives the device
  std::shared_ptr<OpenDevice> device;
  port::PortInfo info;
  rte_mempool* pool = nullptr;
  std::unique_ptr<PacketRing> ring;  ///< net_af_packet's, if it was found
  std::unique_ptr<TapQueue> tap;     ///< net_tap's, if it was found
  bool sends_to_tap = false;         ///< frames go there and not through the device
  std::unique_ptr<BurstGate> gate;   ///< net_memif's
};

/// One receive and one transmit queue of an ethdev, those that info.spread names.
class alignas(64) EthPort final : public port::Port {
 public:
  explicit EthPort(EthPortSetup setup);
  ~EthPort() override = default;
  EthPort(const EthPort&) = delete;
  EthPort& operator=(const EthPort&) = delete;

  [[nodiscard]] const port::PortInfo& info() const override { return info_; }
  [[nodiscard]] const port::PortCounters& counters() const override { return counters_; }
  uint32_t rx_burst(std::span<port::Packet> out, base::Now now) override;
  bool alloc(std::span<port::Packet> out) override {
    return allocate_frames(pool_, out, counters_);
  }
  uint32_t tx_burst(std::span<port::Packet> packets, base::Now now) override;
  void free(std::span<const port::Packet> packets) override { free_frames(packets); }
  std::optional<int> arm() override;
  std::optional<port::LinkState> link() override { return device_->link(); }

 private:
  /// Returns the mbuf itself, its contiguous replacement, or nullptr if there was no room (then the
  /// mbuf is freed).
  rte_mbuf* make_contiguous(rte_mbuf* mbuf);
  /// Calls the device's burst function. \return the number of mbufs received
  uint16_t receive(rte_mbuf** mbufs, uint16_t count);
  uint16_t transmit(rte_mbuf** mbufs, uint16_t count);
  void prepare(port::Packet& packet, rte_mbuf* mbuf) const;
  uint32_t send(std::span<port::Packet> packets);
  uint32_t send_to_tap(std::span<port::Packet> packets);
  /// Watches whether the device takes frames at all, and reports if it does not. \param taken how
  /// many of the `offered` frames the device took
  void watch(size_t offered, uint32_t taken, base::Now now);

  std::shared_ptr<void> memory_;  // outlives device_
  std::shared_ptr<OpenDevice> device_;
  std::unique_ptr<PacketRing> ring_;  // gone before the device: it holds its socket
  std::unique_ptr<TapQueue> tap_;
  const bool sends_to_tap_;
  std::unique_ptr<BurstGate> gate_;
  TransmitWatch watch_;
  bool discards_told_ = false;
  port::PortInfo info_;
  port::PortCounters counters_;
  rte_mempool* pool_;
  uint16_t id_;
  uint16_t queue_;
};

}  // namespace rnic::dpdk

/// \file
/// RingPort: one end of a wire that is memory; private to the driver.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>

#include "dpdk/frame_ring.hpp"
#include "dpdk/mbuf_frames.hpp"
#include "dpdk/transmit_watch.hpp"
#include "dpdk/wire_alarm.hpp"
#include "port/port.hpp"

namespace rnic::dpdk {

/// What one end uses of a wire.
struct RingEnd {
  FrameRing* from_peer;
  FrameRing* to_peer;
  rte_mempool* pool;
  WireAlarm* wakes_us;
  WireAlarm* wakes_peer;
};

/// Its two ends may have a thread each. Long frames cross by pointer, so one that was received may
/// be of the peer's pool; short ones are copied into the ring. Nobody checks sums: the medium is
/// trusted.
class alignas(64) RingPort final : public port::Port {
 public:
  /// \param wire owns what `end` names
  RingPort(port::PortInfo info, const RingEnd& end, std::shared_ptr<void> wire);

  [[nodiscard]] const port::PortInfo& info() const override { return info_; }
  [[nodiscard]] const port::PortCounters& counters() const override { return counters_; }
  uint32_t rx_burst(std::span<port::Packet> out, base::Now now) override;
  bool alloc(std::span<port::Packet> out) override {
    return allocate_frames(end_.pool, out, counters_);
  }
  uint32_t tx_burst(std::span<port::Packet> packets, base::Now now) override;
  void free(std::span<const port::Packet> packets) override;
  std::optional<int> arm() override { return end_.wakes_us->arm(); }

 private:
  [[nodiscard]] bool send(const port::Packet& packet);

  std::shared_ptr<void> wire_;
  RingEnd end_;
  TransmitWatch watch_;
  port::PortInfo info_;
  port::PortCounters counters_;
};

}  // namespace rnic::dpdk

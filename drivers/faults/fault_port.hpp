/// \file
/// A port whose frames suffer the faults of a plan.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "faults/counters.hpp"
#include "faults/flow_table.hpp"
#include "offload/offload.hpp"
#include "port/port.hpp"
#include "rnic/planned_fault.hpp"

namespace rnic::faults {

/// Decorates a port, which must outlive it. Acts on sent frames only.
class FaultPort final : public port::Port {
 public:
  /// The most frames held because the port below takes no more; beyond that tx_burst() refuses.
  static constexpr uint32_t kCapacity = 1024;

  /// \param name of the device, for the log
  /// \param plan those that are not of frames are left out; of the others at most kMostFaults
  FaultPort(port::Port& inner, std::string name, std::span<const PlannedFault> plan);
  ~FaultPort() override;
  FaultPort(const FaultPort&) = delete;
  FaultPort& operator=(const FaultPort&) = delete;

  static constexpr size_t kMostFaults = Flow::kMostSpoiled;

  [[nodiscard]] const port::PortInfo& info() const override { return info_; }
  [[nodiscard]] const port::PortCounters& counters() const override { return counters_; }
  uint32_t rx_burst(std::span<port::Packet> out, base::Now now) override;
  bool alloc(std::span<port::Packet> out) override;
  uint32_t tx_burst(std::span<port::Packet> packets, base::Now now) override;
  void free(std::span<const port::Packet> packets) override { inner_.free(packets); }
  /// The next retry, or the inner port's deadline.
  [[nodiscard]] base::Now next_deadline() const override {
    return base::earlier(inner_.next_deadline(), retry_at_);
  }
  std::optional<int> arm() override { return inner_.arm(); }
  std::optional<port::LinkState> link() override { return inner_.link(); }

  [[nodiscard]] const FaultCounters& fault_counters() const { return fault_counters_; }
  /// Frames held now.
  [[nodiscard]] uint32_t held() const { return static_cast<uint32_t>(ready_.size() - first_); }

 private:
  /// Octets of a payload.
  struct Gap {
    uint32_t begin = 0;
    uint32_t end = 0;
  };
  /// A TCP segment that is about to be sent.
  struct Segment {
    port::Packet packet;
    offload::TcpLayout at;
    base::Seq32 seq;
    Flow& flow;
  };

  void take(port::Packet packet);
  [[nodiscard]] bool take_segment(port::Packet& packet, const offload::TcpLayout& at);
  void look(const Segment& segment, const FpduPart& part);
  void spoil(Segment& segment);
  void send_around_gaps(Segment& segment);
  bool send_part(const Segment& segment, Gap kept);
  void lose_track(const FlowEnds& ends);
  void tell(const PlannedFault& fault, const Segment& segment, const FpduPart& part) const;
  void send_ready(base::Now now);

  port::Port& inner_;
  const std::string name_;
  port::PortInfo info_;
  port::PortCounters counters_;
  FaultCounters fault_counters_;
  std::vector<PlannedFault> plan_;
  FlowTable flows_;
  std::vector<Gap> gaps_;            // of the segment that is looked at, in their order
  std::vector<port::Packet> ready_;  // sent from first_ on
  size_t first_ = 0;
  base::Now retry_at_ = base::kNever;
};

}  // namespace rnic::faults

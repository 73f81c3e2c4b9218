/// \file
/// One end of rnic-perf in two processes: a region, and control messages in buffers of their own.
#pragma once

#include <cstdint>
#include <memory>

#include "workload/workload.hpp"

namespace rnic::perf {

inline constexpr uint64_t kServerMemory = 64u << 20;  ///< octets of the region a server offers
/// The depth of the queues: a batch has at most one message less, as the control message needs one.
inline constexpr uint32_t kQueueDepth = 128;

[[nodiscard]] Error protocol_error(const std::string& what);

class Station {
 public:
  /// No page of the region is touched before something needs it.
  static Result<std::unique_ptr<Station>> create(Device device, uint64_t memory, AccessSet rights);

  Status post_control_receive();
  /// Its completion has to have come before the next one is posted.
  Status post_control_send(const workload::ControlMessage& message);
  /// What the receive of post_control_receive() has brought.
  [[nodiscard]] Result<workload::ControlMessage> received() const;

  std::unique_ptr<workload::End> end;
  workload::Buffer memory;
  MemoryRegion region;

 private:
  Station() = default;
  workload::Buffer control_;  // out in the first half, in in the second
  MemoryRegion control_region_;
};

/// \return whether every slot of the batch holds what it has to
[[nodiscard]] bool matches(const Station& station, const workload::ControlMessage& batch);

}  // namespace rnic::perf

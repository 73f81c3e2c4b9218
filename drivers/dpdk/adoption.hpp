/// \file
/// Memory and descriptors of DPDK that a child of this process must not have; private to the
/// driver.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace rnic::dpdk {

/// Keeps DPDK's memory, and the files behind it, from children of this process, now and when DPDK
/// takes more. Called once, when DPDK has started. A child cannot write to the memory even by
/// mistake, and does not keep memory that the parent has given back or left behind.
void keep_memory_from_children();

/// The descriptors that DPDK opens for one port, as far as its drivers do not tell of them in
/// another way. (Sockets that DPDK's interrupt thread listens to are adopted when it is told of
/// them.)
class PortDescriptors {
 public:
  enum class Kind : uint8_t {
    None,
    PacketSocket,  ///< net_af_packet's
    Tun,           ///< net_tap's queues, the one that only keeps the interface included
  };

  PortDescriptors() = default;
  /// Called after the end of the device, which has closed them.
  ~PortDescriptors();
  PortDescriptors(PortDescriptors&& other) noexcept = default;
  PortDescriptors& operator=(PortDescriptors&& other) noexcept = default;

  /// The descriptors of that kind that the process has now, in order.
  [[nodiscard]] static std::vector<int> list(Kind kind);
  /// Adopts the descriptors that were not there `before`, and keeps their mappings from children.
  /// The caller delays forks from list() to this call.
  void adopt(Kind kind, const std::vector<int>& before);

 private:
  std::vector<int> adopted_;
};

}  // namespace rnic::dpdk

/// \file
/// What DPDK has made and a child of this process must not have; private to the driver.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace rnic::dpdk {

/// Once, when DPDK has started: no child gets its memory or the files behind it, now and when it
/// takes more. A child cannot write to it even by mistake, and memory that the parent has given
/// back or left behind is not kept by a child.
void keep_memory_from_children();

/// The descriptors that DPDK opens for one port, as far as its drivers tell of them in no other
/// way. (Sockets that DPDK's interrupt thread listens to are adopted where it is told of them.)
class PortDescriptors {
 public:
  enum class Kind : uint8_t {
    None,
    PacketSocket,  ///< net_af_packet's
    Tun,           ///< net_tap's queues, the one that only keeps the interface included
  };

  PortDescriptors() = default;
  /// Behind the end of the device, which has closed them.
  ~PortDescriptors();
  PortDescriptors(PortDescriptors&& other) noexcept = default;
  PortDescriptors& operator=(PortDescriptors&& other) noexcept = default;

  /// Those that the process has now, in order.
  [[nodiscard]] static std::vector<int> list(Kind kind);
  /// Adopts those that were not there `before`, and keeps what is mapped of them from children.
  /// The caller delays forks from the one to the other.
  void adopt(Kind kind, const std::vector<int>& before);

 private:
  std::vector<int> adopted_;
};

}  // namespace rnic::dpdk

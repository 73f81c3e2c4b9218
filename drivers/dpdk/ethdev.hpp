/// \file
/// Opening DPDK ports.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/fail.hpp"
#include "port/port.hpp"

namespace rnic::dpdk {

/// Sizes and identity of one port.
struct PortOptions {
  std::optional<port::MacAddress> mac;  ///< default: the device's own
  uint32_t mtu = 1500;                  ///< octets of the largest IP packet, 576 to 64000
  uint32_t ring_size = 1024;            ///< frames a queue holds; rounded up to a power of two
  uint32_t pool_size = 4096;            ///< buffers; at least twice ring_size is sensible
};

/// Sizes and identities of a pair of ring ports.
struct RingPairOptions {
  port::MacAddress mac_a{0x02, 0, 0, 0, 0, 0x0a};
  port::MacAddress mac_b{0x02, 0, 0, 0, 0, 0x0b};
  uint32_t mtu = 1500;
  uint32_t ring_size = 1024;  ///< frames each direction holds; rounded up to a power of two
  uint32_t pool_size = 4096;  ///< buffers of each port
  bool one_thread = false;    ///< both ports are polled by the same thread
};

using PortPair = std::pair<std::unique_ptr<port::Port>, std::unique_ptr<port::Port>>;

/// Opens two ports in this process that are joined by memory; what each sends the other receives.
/// Frames cross by pointer; checksums are trusted (left open). Each port may have a polling thread
/// of its own. A received buffer may belong to the other port's pool; the memory of both lives
/// until both ports are gone. The names are for readers.
[[nodiscard]] Result<PortPair> open_ring_pair(std::string_view name_a, std::string_view name_b,
                                              const RingPairOptions& options = {});

/// Opens a device. `spec` is the name of an ethdev that DPDK has already, a PCI address
/// ("0000:01:00.0", needs EalConfig::pci), or a virtual device with its arguments, which is
/// plugged: "net_af_packet0,iface=veth0", "net_memif0,role=server,id=0", "net_tap0,iface=tap0".
///
/// Jumbo frames: net_af_packet and net_memif get a frame size (framesz=, bsize=) that fits the MTU
/// unless the spec gives one. Frames that the kernel sends over veth to net_af_packet carry
/// unfinished checksums unless `ethtool -K <peer> tx off` was run on the kernel's side.
[[nodiscard]] Result<std::unique_ptr<port::Port>> open_port(std::string_view spec,
                                                            const PortOptions& options = {});

inline constexpr uint16_t kMaxQueues = 64;

/// Opens a device with several queues. \return a port for each queue, in the order of the queues'
/// numbers, each with a pool of options.pool_size buffers, for a worker each (over a
/// net::QueueExchange). A device that does not spread TCP over its queues by a known hash and table
/// (RSS) gives one port, and a line in the log says so.
[[nodiscard]] Result<std::vector<std::unique_ptr<port::Port>>> open_queues(
    std::string_view spec, uint16_t queues, const PortOptions& options = {});

}  // namespace rnic::dpdk

/// \file
/// Configuring and starting an ethdev; private to the driver.
#pragma once

#include <cstdint>
#include <span>
#include <string>

#include "base/fail.hpp"
#include "port/port.hpp"

struct rte_mempool;

namespace rnic::dpdk {

/// What the device is asked for.
struct DeviceSetup {
  std::string name;  ///< for messages
  uint32_t mtu = 1500;
  uint32_t ring_size = 1024;
  bool tell_mtu = true;  ///< false: the device takes jumbo frames but refuses to hear of an MTU
  bool offloads = true;  ///< use the device's checksum offloads when it has them
};

/// Octets that one mbuf must hold, so that a device of these facts takes it for whole frames.
/// \param least what the device says to need (rte_eth_dev_info::min_rx_bufsize)
/// \param frame octets of the longest frame
[[nodiscard]] uint32_t buffer_room(uint32_t least, uint32_t frame);

/// What a started device gives.
struct StartedDevice {
  port::ChecksumMode checksum = port::ChecksumMode::Software;  ///< Offload or Software
  port::ReceiveSpread spread;                                  ///< of queue 0
};

/// As many receive and transmit queues as there are `pools`, checksum offloads when the device has
/// all of them, started. Several queues need a device that spreads TCP over them by a hash and a
/// table that we know (receive-side scaling); any other is started with one queue, the first
/// pool's.
[[nodiscard]] Result<StartedDevice> start_device(uint16_t id, const DeviceSetup& setup,
                                                 std::span<rte_mempool* const> pools);

/// The limits of the sizes in the options.
[[nodiscard]] Status check_sizes(uint32_t mtu, uint32_t ring_size, uint32_t pool_size);

}  // namespace rnic::dpdk

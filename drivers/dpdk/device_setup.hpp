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

/// The requirements on a device.
struct DeviceSetup {
  std::string name;  ///< for messages
  uint32_t mtu = 1500;
  uint32_t ring_size = 1024;
  bool tell_mtu = true;  ///< false: the device takes jumbo frames but refuses to be told an MTU
  bool offloads = true;  ///< use the device's checksum offloads when it has them
};

/// Octets that one mbuf must hold, so that the device puts a whole frame into it.
/// \param least the device's own minimum (rte_eth_dev_info::min_rx_bufsize)
/// \param frame octets of the longest frame
[[nodiscard]] uint32_t buffer_room(uint32_t least, uint32_t frame);

/// The properties of a started device.
struct StartedDevice {
  port::ChecksumMode checksum = port::ChecksumMode::Software;  ///< Offload or Software
  port::ReceiveSpread spread;                                  ///< of queue 0
};

/// Starts a device with as many receive and transmit queues as there are `pools`, and with checksum
/// offloads if it has all of them. Several queues need a device that spreads TCP over them by a
/// known hash and table (receive-side scaling); any other device is started with one queue, that of
/// the first pool.
[[nodiscard]] Result<StartedDevice> start_device(uint16_t id, const DeviceSetup& setup,
                                                 std::span<rte_mempool* const> pools);

/// Checks the sizes in the options against their limits.
[[nodiscard]] Status check_sizes(uint32_t mtu, uint32_t ring_size, uint32_t pool_size);

}  // namespace rnic::dpdk

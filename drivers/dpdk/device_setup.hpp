/// \file
/// Configuring and starting an ethdev; private to the driver.
#pragma once

#include <cstdint>
#include <string>

#include "base/result.hpp"
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

/// One receive and one transmit queue, checksum offloads when the device has all of them, started.
/// \return how the device treats checksums: Offload or Software
[[nodiscard]] base::Result<port::ChecksumMode> start_device(uint16_t id, const DeviceSetup& setup,
                                                            rte_mempool* pool);

/// The limits of the sizes in the options.
[[nodiscard]] base::Status check_sizes(uint32_t mtu, uint32_t ring_size, uint32_t pool_size);

}  // namespace rnic::dpdk

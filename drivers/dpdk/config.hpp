/// \file
/// How DPDK is started; without a header of its own.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace rnic::dpdk {

/// The source of DPDK's memory.
enum class Hugepages : uint8_t {
  Auto,     ///< hugepages when enough of them are free, ordinary memory otherwise
  Require,  ///< hugepages, or an error that says how to reserve them
  Off,      ///< ordinary memory (--no-huge)
};

/// How DPDK is started.
struct EalConfig {
  Hugepages hugepages = Hugepages::Auto;
  uint32_t memory_mb = 512;  ///< reserved at start for all pools of the process
  /// Keep the memory out of the file system: nothing is left behind, and no hugetlbfs mount is
  /// needed. Off: the memory is in files under a hugetlbfs mount; with a file_prefix they stay
  /// there under that name.
  bool in_memory = true;
  std::string file_prefix;  ///< empty: "rnic<pid>"
  /// PCI devices to take, as EthPort's specs name them ("0000:01:00.0,key=value"); they are bound
  /// to vfio-pci. All others stay free for other processes. Empty: the bus is not scanned.
  std::vector<std::string> pci_devices;
  bool telemetry = false;               ///< DPDK's own telemetry socket
  std::string log_level = "error";      ///< of DPDK's messages on stderr
  std::vector<std::string> extra_args;  ///< appended to the EAL's arguments as they are
};

}  // namespace rnic::dpdk

/// \file
/// Checks whether the machine has the resources that a configuration needs at start. Each refusal
/// is one line that says how much is needed and how much there is.
#pragma once

#include "dpdk/eal.hpp"
#include "local/local.hpp"
#include "settings/settings.hpp"
#include "verbs/machine_memory.hpp"

namespace rnic::verbs {

/// The memory that one setting needs.
struct MemoryShare {
  std::string key;  ///< as docs/settings.md has it, without the device: "limits.hold_octets"
  std::string of;   ///< the device's name; empty: the process
  uint64_t octets = 0;
};

/// The memory that a start with these settings needs: the tables of every device, and DPDK's memory
/// if it is not in hugepages.
[[nodiscard]] std::vector<MemoryShare> memory_shares(const settings::Settings& settings);

/// ResourceExhausted, naming the largest share, if all shares together are more than there is.
/// Without this check the memory would be taken page by page, until the kernel chooses a process to
/// kill.
[[nodiscard]] Status check_memory(const settings::Settings& settings, const MemoryBound& there);

/// ResourceExhausted if a thread is to run on a core that this process may not use.
[[nodiscard]] Status check_cores(const settings::Settings& settings);

/// ResourceExhausted if the system would silently cut buffers or backlogs of sockets.
/// \param root the root of the file system: "" except in tests
[[nodiscard]] Status check_socket_limits(const settings::Settings& settings,
                                         const std::string& root);

/// ResourceExhausted if a device on sockets may have more connections, or more listeners, than this
/// process may have descriptors, or if all of them together are more and a limit was raised above
/// its default. No descriptors are reserved for other files of the process: the last connections
/// are refused one by one, and counted.
[[nodiscard]] Status check_descriptors(const settings::Settings& settings);

/// Makes all of these checks.
[[nodiscard]] Status check_machine(const settings::Settings& settings);

/// The configuration with which DPDK is started.
[[nodiscard]] dpdk::EalConfig eal_config(const settings::Settings& settings);
/// The port of a device on a local wire.
[[nodiscard]] local::Options local_options(const settings::DeviceSettings& device);
/// \return whether one of the devices needs DPDK
[[nodiscard]] bool needs_eal(const settings::Settings& settings);

}  // namespace rnic::verbs

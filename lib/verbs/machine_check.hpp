/// \file
/// Whether the machine can give what a configuration asks for at start. Each refusal is one line
/// with what is asked for and what is there.
#pragma once

#include "dpdk/eal.hpp"
#include "settings/settings.hpp"
#include "verbs/machine_memory.hpp"

namespace rnic::verbs {

/// One line of what is asked for.
struct MemoryShare {
  std::string key;  ///< as docs/settings.md has it, without the device: "limits.hold_octets"
  std::string of;   ///< the device's name; empty: the process
  uint64_t octets = 0;
};

/// What a start with these settings asks the machine for: the tables of every device, and DPDK's
/// memory where it is not hugepages.
[[nodiscard]] std::vector<MemoryShare> memory_shares(const settings::Settings& settings);

/// ResourceExhausted, naming the largest share, when all of it together is more than is there.
/// Without this check the memory would be taken page by page, until the kernel chooses a process to
/// kill.
[[nodiscard]] Status check_memory(const settings::Settings& settings, const MemoryBound& there);

/// ResourceExhausted where a thread is to run on a core that this process may not use.
[[nodiscard]] Status check_cores(const settings::Settings& settings);

/// ResourceExhausted where the system would cut buffers or backlogs of sockets in silence.
/// \param root of the file system: "" but in tests
[[nodiscard]] Status check_socket_limits(const settings::Settings& settings,
                                         const std::string& root);

/// ResourceExhausted where a device on sockets is to hold more connections or listeners than this
/// process may have descriptors, or all of them together where somebody has asked for more than the
/// defaults. Nothing is kept free for what else the process opens: the last of them are refused one
/// by one, and counted.
[[nodiscard]] Status check_descriptors(const settings::Settings& settings);

/// All of these.
[[nodiscard]] Status check_machine(const settings::Settings& settings);

/// How DPDK is to be started.
[[nodiscard]] dpdk::EalConfig eal_config(const settings::Settings& settings);
/// A device that needs DPDK.
[[nodiscard]] bool needs_eal(const settings::Settings& settings);

}  // namespace rnic::verbs

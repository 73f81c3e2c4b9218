/// \file
/// DPDK's environment (EAL): started once per process.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "base/fail.hpp"

namespace rnic::dpdk {

/// Where DPDK's memory comes from.
enum class Hugepages : uint8_t {
  Auto,     ///< hugepages when enough of them are free, ordinary memory otherwise
  Require,  ///< hugepages, or an error that says how to reserve them
  Never,    ///< ordinary memory (--no-huge)
};

/// How DPDK is started.
struct EalConfig {
  Hugepages hugepages = Hugepages::Auto;
  uint32_t memory_mb = 512;  ///< reserved at start for all pools of the process
  /// Leaves nothing behind in the file system and needs no hugetlbfs mount. Off: the memory is in
  /// files under a hugetlbfs mount; with a file_prefix they stay there under that name.
  bool in_memory = true;
  std::string file_prefix;  ///< empty: "rnic<pid>"
  /// PCI devices to take, as EthPort's specs name them ("0000:01:00.0,key=value"); they are bound
  /// to vfio-pci. All others stay free for other processes. Empty: the bus is not looked at.
  std::vector<std::string> pci_devices;
  bool telemetry = false;               ///< DPDK's own telemetry socket
  std::string log_level = "error";      ///< of DPDK's messages on stderr
  std::vector<std::string> extra_args;  ///< appended to the EAL's arguments as they are
};

/// The process-wide environment. Start it from one thread before any port is opened.
class Eal {
 public:
  Eal() = delete;

  /// Starts DPDK; when it runs already, this does nothing and succeeds. The affinity of the calling
  /// thread is as before afterwards. After a failure in DPDK itself a second try may be refused by
  /// DPDK.
  [[nodiscard]] static Status init(const EalConfig& config);
  /// Unsupported in a child of a process that had a runtime open, or DPDK started: DPDK's memory
  /// and threads are the parent's, and it cannot be started twice.
  [[nodiscard]] static Status check_process();
  /// In this process: not in one that was forked behind it.
  [[nodiscard]] static bool started();
  /// Octets of ordinary memory that init() would take: 0 where it runs already, takes hugepages or
  /// fails for want of them.
  [[nodiscard]] static uint64_t ordinary_memory(const EalConfig& config);
  /// True when the memory is hugepages.
  [[nodiscard]] static bool on_hugepages();
  /// One line that says how it runs and why: "hugepages (256 free of 2 MB)", "no hugepages: ...".
  [[nodiscard]] static const std::string& description();
  /// Optional, at the end of the process when all ports are closed. DPDK cannot be started again.
  static void cleanup();

  /// Gives the calling thread its own buffer caches; a worker that is not the thread that called
  /// init() calls this once, before its first burst. Without it every alloc and free goes to the
  /// shared pool. It throws nothing, since above the first call of a thread nothing is caught.
  [[nodiscard]] static Status register_thread() noexcept;
  static void unregister_thread();

  /// What DPDK is started with. \param cpu where its first thread runs
  [[nodiscard]] static std::vector<std::string> arguments(const EalConfig& config, bool hugepages,
                                                          int cpu);
};

}  // namespace rnic::dpdk

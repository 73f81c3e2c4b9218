/// \file
/// DPDK's environment (EAL): started once per process.
#pragma once

#include <cstdint>
#include <string>

#include "base/fail.hpp"
#include "dpdk/config.hpp"

namespace rnic::dpdk {

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

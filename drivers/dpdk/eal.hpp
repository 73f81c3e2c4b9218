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

  /// Starts DPDK; if it runs already, the call does nothing and succeeds. The affinity of the
  /// calling thread does not change. After a failure in DPDK itself, DPDK may refuse a second try.
  [[nodiscard]] static Status init(const EalConfig& config);
  /// Unsupported in a child of a process that had a runtime open, or DPDK started: DPDK's memory
  /// and threads are the parent's, and it cannot be started twice.
  [[nodiscard]] static Status check_process();
  /// \return whether this process has started DPDK; false in a process forked since
  [[nodiscard]] static bool started();
  /// Octets of ordinary memory that init() would take; 0 if DPDK runs already, takes hugepages, or
  /// fails for want of them.
  [[nodiscard]] static uint64_t ordinary_memory(const EalConfig& config);
  /// \return whether the memory is in hugepages
  [[nodiscard]] static bool on_hugepages();
  /// One line that says how it runs and why: "hugepages (256 free of 2 MB)", "no hugepages: ...".
  [[nodiscard]] static const std::string& description();
  /// Optional, at the end of the process when all ports are closed. DPDK cannot be started again.
  static void cleanup();

  /// Gives the calling thread its own buffer caches; a worker that is not the thread that called
  /// init() calls this once, before its first burst. Without it every alloc and free goes to the
  /// shared pool. It throws nothing, since nothing catches above the first call of a thread.
  [[nodiscard]] static Status register_thread() noexcept;
  static void unregister_thread();

  /// The arguments that DPDK is started with. \param cpu the CPU of its first thread
  [[nodiscard]] static std::vector<std::string> arguments(const EalConfig& config, bool hugepages,
                                                          int cpu);
};

}  // namespace rnic::dpdk

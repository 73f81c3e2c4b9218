#include "dpdk/eal.hpp"

#include <pthread.h>
#include <rte_eal.h>
#include <rte_errno.h>
#include <rte_lcore.h>
#include <rte_memory.h>
#include <sched.h>
#include <unistd.h>

#include <algorithm>
#include <cstring>
#include <fstream>
#include <sstream>

#include "base/log.hpp"
#include "base/starved.hpp"
#include "dpdk/adoption.hpp"
#include "dpdk/log_capture.hpp"
#include "process/generation.hpp"

namespace rnic::dpdk {
namespace {

// A process has one DPDK, and so there is one record of its state.
struct EalState {
  bool started = false;
  uint32_t generation = 0;  // of the process that started it
  bool hugepages = false;
  std::string description = "not started";
};

EalState& state() {
  static EalState the_state;
  return the_state;
}

uint64_t read_number(const char* path) {
  std::ifstream file(path);
  uint64_t value = 0;
  file >> value;
  return file ? value : 0;
}

bool hugetlbfs_mounted() {
  std::ifstream mounts("/proc/mounts");
  std::string line;
  while (std::getline(mounts, line)) {
    std::istringstream fields(line);
    std::string device, path, type;
    fields >> device >> path >> type;
    if (type == "hugetlbfs" && access(path.c_str(), W_OK) == 0) return true;
  }
  return false;
}

/// Empty when hugepages can hold `config.memory_mb`; otherwise the reason.
std::string why_no_hugepages(const EalConfig& config) {
  constexpr uint64_t kPageMb = 2;
  const uint64_t free_pages =
      read_number("/sys/kernel/mm/hugepages/hugepages-2048kB/free_hugepages");
  const uint64_t free_large =
      read_number("/sys/kernel/mm/hugepages/hugepages-1048576kB/free_hugepages");
  if (free_pages * kPageMb + free_large * 1024 < config.memory_mb) {
    return std::to_string(free_pages) + " hugepages of 2 MB are free, " +
           std::to_string((config.memory_mb + kPageMb - 1) / kPageMb) + " are needed";
  }
  if (!config.in_memory && !hugetlbfs_mounted()) return "no writable hugetlbfs is mounted";
  return {};
}

int first_allowed_cpu(const cpu_set_t& allowed) {
  for (int cpu = 0; cpu < CPU_SETSIZE; ++cpu) {
    if (CPU_ISSET(cpu, &allowed)) return cpu;
  }
  return 0;
}

/// \return whether the user's arguments say which devices DPDK takes or leaves
bool chooses_devices(const std::vector<std::string>& args) {
  return std::any_of(args.begin(), args.end(), [](const std::string& arg) {
    return arg.starts_with("-a") || arg.starts_with("-b") || arg.starts_with("--allow") ||
           arg.starts_with("--block");
  });
}

/// Runs rte_eal_init, which keeps pointers into its arguments and moves the thread to its first
/// lcore.
int start(std::vector<std::string> arguments, const cpu_set_t& allowed) {
  static std::vector<std::string> kept;
  static std::vector<char*> argv;
  kept = std::move(arguments);
  argv.clear();
  for (std::string& argument : kept) argv.push_back(argument.data());
  argv.push_back(nullptr);
  const int rc = rte_eal_init(static_cast<int>(kept.size()), argv.data());
  pthread_setaffinity_np(pthread_self(), sizeof allowed, &allowed);
  return rc;
}

Status check_config(const EalConfig& config) {
  if (config.memory_mb < 16) {
    return base::fail(ErrorCode::InvalidArgument,
                      "DPDK memory of " + std::to_string(config.memory_mb) + " MB: at least 16");
  }
  for (const std::string& argument : config.extra_args) {
    // With these arguments DPDK would end the process.
    if (argument == "-h" || argument == "--help" || argument == "-v" || argument == "--version") {
      return base::fail(ErrorCode::InvalidArgument, "EAL argument " + argument + " is not allowed");
    }
  }
  return {};
}

}  // namespace

std::vector<std::string> Eal::arguments(const EalConfig& config, bool hugepages, int cpu) {
  std::vector<std::string> args{"rnic"};
  // One lcore only: workers are threads of ours and register themselves.
  args.push_back("--lcores=0@" + std::to_string(cpu));
  args.push_back("-m");
  args.push_back(std::to_string(config.memory_mb));
  args.push_back("--file-prefix=" + (config.file_prefix.empty() ? "rnic" + std::to_string(getpid())
                                                                : config.file_prefix));
  args.push_back("--log-level=" + config.log_level);
  if (!hugepages) {
    args.push_back("--no-huge");
    args.push_back("--no-shconf");  // --in-memory is refused beside --no-huge
  } else if (config.in_memory) {
    args.push_back("--in-memory");
  } else if (config.file_prefix.empty()) {
    args.push_back("--huge-unlink=always");  // nobody knows the name to share or to clean them up
  }
  const bool pci = !config.pci_devices.empty();
  if (!pci) args.push_back("--no-pci");
  // Without a choice DPDK takes every device that is bound to vfio-pci.
  if (!chooses_devices(config.extra_args)) {
    for (const std::string& device : config.pci_devices) {
      args.push_back("-a");
      args.push_back(device);
    }
  }
  // Only PCI devices may need physical addresses, and ordinary memory cannot give them.
  if (!hugepages || !pci) args.push_back("--iova-mode=va");
  if (!config.telemetry) args.push_back("--no-telemetry");
  args.insert(args.end(), config.extra_args.begin(), config.extra_args.end());
  return args;
}

Status Eal::check_process() {
  if (process::Generation::now() == 0) return {};
  return base::fail(ErrorCode::Unsupported, base::worded([] {
                      return "a process that was forked from one with open devices cannot use "
                             "DPDK, which is the parent's: exec a program that opens them, or use "
                             "ports that need no DPDK (port = \"socket\")";
                    }));
}

Status Eal::init(const EalConfig& config) {
  if (auto status = check_process(); !status) return status;
  if (started()) return {};
  if (auto status = check_config(config); !status) return status;
  const std::string lack = why_no_hugepages(config);
  if (config.hugepages == Hugepages::Require && !lack.empty()) {
    return base::fail(ErrorCode::Environment, "hugepages are required, but " + lack +
                                                  ": run scripts/hugepages " +
                                                  std::to_string((config.memory_mb + 1) / 2) +
                                                  " as root, or allow DPDK to run without them");
  }
  const bool hugepages = config.hugepages != Hugepages::Off && lack.empty();

  cpu_set_t allowed;
  CPU_ZERO(&allowed);
  pthread_getaffinity_np(pthread_self(), sizeof allowed, &allowed);
  // From here on, until the process ends, a child would have memory that it must not touch.
  static const process::Generation::Use used;
  LogCapture capture;
  if (start(arguments(config, hugepages, first_allowed_cpu(allowed)), allowed) < 0) {
    const std::string reason = rte_strerror(rte_errno);
    return base::fail(ErrorCode::Environment,
                      "DPDK does not start: " + reason + capture.quote() + "; check the memory (" +
                          std::to_string(config.memory_mb) +
                          " MB), the rights of this user and the EAL arguments");
  }
  // DPDK makes a directory per process, which is removed if it is empty.
  rmdir(rte_eal_get_runtime_dir());
  keep_memory_from_children();
  state().started = true;
  state().generation = process::Generation::now();
  state().hugepages = hugepages;
  state().description = hugepages                            ? "hugepages"
                        : config.hugepages == Hugepages::Off ? "no hugepages: configured so"
                                                             : "no hugepages: " + lack;
  base::log(base::LogLevel::Info, "dpdk", [] { return "DPDK runs on " + state().description; });
  return {};
}

uint64_t Eal::ordinary_memory(const EalConfig& config) {
  if (started() || config.hugepages == Hugepages::Require) return 0;
  if (config.hugepages == Hugepages::Auto && why_no_hugepages(config).empty()) return 0;
  // DPDK has a descriptor for each page of 4 KB.
  const uint64_t octets = uint64_t{config.memory_mb} << 20;
  return octets + octets / 4096 * sizeof(rte_memseg);
}

bool Eal::started() { return state().started && state().generation == process::Generation::now(); }
bool Eal::on_hugepages() { return state().hugepages; }
const std::string& Eal::description() { return state().description; }

void Eal::cleanup() {
  if (!started()) return;
  rte_eal_cleanup();
  state() = EalState{};
}

Status Eal::register_thread() noexcept {
  if (!started()) {
    return base::fail(ErrorCode::WrongState,
                      base::worded([] { return std::string("DPDK is not started"); }));
  }
  if (rte_lcore_id() != LCORE_ID_ANY) return {};
  if (rte_thread_register() != 0) {
    return base::fail(ErrorCode::ResourceExhausted, base::worded([] {
                        return std::string("DPDK has no place for another thread: ") +
                               rte_strerror(rte_errno);
                      }));
  }
  return {};
}

void Eal::unregister_thread() {
  if (started()) rte_thread_unregister();
}

}  // namespace rnic::dpdk

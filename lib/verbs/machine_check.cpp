#include "verbs/machine_check.hpp"

#include <sched.h>
#include <sys/resource.h>

#include <algorithm>

#include "device/memory_use.hpp"
#include "socket/transport.hpp"

namespace rnic::verbs {

namespace {

/// \return whether a port is named like 0000:01:00.0; only such a name makes DPDK scan the bus
bool is_pci(const std::string& port) {
  return port.find(':') == 4 && !port.starts_with(settings::kWirePrefix);
}

void add(std::vector<MemoryShare>& shares, const std::string& device,
         const base::MemoryUses& uses) {
  for (const base::MemoryUse& use : uses) {
    const auto same = [&](const MemoryShare& s) { return s.of == device && s.key == use.key; };
    const auto it = std::find_if(shares.begin(), shares.end(), same);
    if (it != shares.end()) {
      it->octets += use.octets;
    } else {
      shares.push_back({use.key, device, use.octets});
    }
  }
}

/// The key to change for a share: the one that its limit follows from, if the user has not given
/// the limit itself.
std::string root_of(const settings::Settings& settings, const MemoryShare& share) {
  for (const settings::DeviceSettings& device : settings.devices) {
    if (device.config.name == share.of) return std::string(settings::root_of(device, share.key));
  }
  return share.key;
}

/// The number of descriptors that a key needs.
struct DescriptorShare {
  std::string key;
  uint64_t descriptors = 0;
  bool above_default = false;
};

std::vector<DescriptorShare> descriptor_shares(const settings::Settings& settings) {
  const socket::Config usual;
  std::vector<DescriptorShare> shares;
  for (const settings::DeviceSettings& device : settings.devices) {
    if (!device.on_socket()) continue;
    const std::string of = "device." + device.config.name + ".";
    const uint32_t connections = device.socket.max_connections;
    const uint32_t listeners = device.socket.max_listeners;
    shares.push_back(
        {of + "limits.max_connections", connections, connections > usual.max_connections});
    shares.push_back({of + "tcp.max_listeners", listeners, listeners > usual.max_listeners});
  }
  return shares;
}

}  // namespace

bool needs_eal(const settings::Settings& settings) {
  return std::any_of(settings.devices.begin(), settings.devices.end(),
                     [](const settings::DeviceSettings& device) { return device.needs_eal(); });
}

dpdk::EalConfig eal_config(const settings::Settings& settings) {
  dpdk::EalConfig config;
  config.hugepages = settings.eal.hugepages;
  config.memory_mb = settings.eal.memory_mb;
  config.extra_args = settings.eal.args;
  for (const settings::DeviceSettings& device : settings.devices) {
    if (is_pci(device.port)) config.pci_devices.push_back(device.port);
  }
  return config;
}

local::Options local_options(const settings::DeviceSettings& device) {
  return {.folder = device.local_folder(), .mac = device.mac, .mtu = device.mtu};
}

std::vector<MemoryShare> memory_shares(const settings::Settings& settings) {
  std::vector<MemoryShare> shares;
  if (needs_eal(settings)) {
    shares.push_back({"eal.memory_mb", {}, dpdk::Eal::ordinary_memory(eal_config(settings))});
  }
  for (const settings::DeviceSettings& device : settings.devices) {
    add(shares, device.config.name, device::memory_use(device.config, !device.on_socket()));
    if (device.on_socket()) {
      add(shares, device.config.name, socket::Transport::memory_use(device.socket));
    }
    if (device.on_local()) {
      const uint64_t octets = local::LocalPort::memory_use(local_options(device));
      shares.push_back({"mtu", device.config.name, octets});
    }
  }
  return shares;
}

Status check_memory(const settings::Settings& settings, const MemoryBound& there) {
  const std::vector<MemoryShare> shares = memory_shares(settings);
  uint64_t all = 0;
  const MemoryShare* largest = nullptr;
  for (const MemoryShare& share : shares) {
    all += share.octets;
    if (largest == nullptr || share.octets > largest->octets) largest = &share;
  }
  if (largest == nullptr || all <= there.octets) return {};
  const std::string key =
      largest->of.empty() ? largest->key : "device." + largest->of + "." + largest->key;
  const std::string root = root_of(settings, *largest);
  const bool follows = root != largest->key;
  return base::fail(ErrorCode::ResourceExhausted,
                    key + ": the configuration asks for " + memory_text(all) + " of memory, " +
                        memory_text(largest->octets) + " of it by this key" +
                        (follows ? ", which follows from " + root : "") + ", and " +
                        memory_text(there.octets) + " are there (" + there.by + "): lower " +
                        (follows ? "one of them" : "it"));
}

Status check_cores(const settings::Settings& settings) {
  if (settings.worker.mode != settings::WorkerSettings::Threaded) return {};
  cpu_set_t allowed;
  CPU_ZERO(&allowed);
  if (sched_getaffinity(0, sizeof allowed, &allowed) != 0) return {};
  for (const uint32_t core : settings.worker.cores) {
    if (core < CPU_SETSIZE && CPU_ISSET(core, &allowed)) continue;
    std::string there;
    for (uint32_t i = 0; i < CPU_SETSIZE; ++i) {
      if (CPU_ISSET(i, &allowed)) there += (there.empty() ? "" : ", ") + std::to_string(i);
    }
    return base::fail(ErrorCode::ResourceExhausted,
                      "worker.cores: core " + std::to_string(core) +
                          " is asked for, and this process may run on " + there);
  }
  return {};
}

Status check_socket_limits(const settings::Settings& settings, const std::string& root) {
  for (const settings::DeviceSettings& device : settings.devices) {
    if (!device.on_socket()) continue;
    const struct {
      const char* key;
      uint64_t asked;
      const char* limit;
    } rows[] = {
        {"system_send_buffer", device.socket.system_send_buffer, "wmem_max"},
        {"system_receive_buffer", device.socket.system_receive_buffer, "rmem_max"},
        {"backlog", device.socket.backlog, "somaxconn"},
    };
    for (const auto& row : rows) {
      uint64_t most = 0;
      if (!read_number(root + "/proc/sys/net/core/" + row.limit, most) || row.asked <= most) {
        continue;
      }
      return base::fail(ErrorCode::ResourceExhausted,
                        "device." + device.config.name + ".socket." + row.key + ": " +
                            std::to_string(row.asked) + " are asked for, and the system gives " +
                            std::to_string(most) + " at most (net.core." + row.limit +
                            "): lower it, or raise the system's limit");
    }
  }
  return {};
}

Status check_descriptors(const settings::Settings& settings) {
  rlimit limit{};
  if (getrlimit(RLIMIT_NOFILE, &limit) != 0) return {};
  const std::vector<DescriptorShare> shares = descriptor_shares(settings);
  const auto refuse = [&](const DescriptorShare& share, const std::string& asked) {
    return base::fail(ErrorCode::ResourceExhausted,
                      share.key + ": " + asked + ", and this process may have " +
                          std::to_string(limit.rlim_cur) +
                          " (ulimit -n): lower it, or raise the limit");
  };
  uint64_t all = 0;
  const DescriptorShare* largest = nullptr;
  for (const DescriptorShare& share : shares) {
    if (share.descriptors > limit.rlim_cur) {
      return refuse(share, std::to_string(share.descriptors) +
                               " are asked for, each of which is a descriptor");
    }
    all += share.descriptors;
    if (!share.above_default) continue;
    if (largest == nullptr || share.descriptors > largest->descriptors) largest = &share;
  }
  // By default a device has as many connections as a process usually has descriptors. A user who
  // has not raised that limit is not refused.
  if (largest == nullptr || all <= limit.rlim_cur) return {};
  return refuse(*largest, "the devices on sockets ask for " + std::to_string(all) +
                              " descriptors together, " + std::to_string(largest->descriptors) +
                              " of them by this key");
}

Status check_machine(const settings::Settings& settings) {
  if (auto status = check_descriptors(settings); !status) return status;
  if (auto status = check_cores(settings); !status) return status;
  if (auto status = check_socket_limits(settings, ""); !status) return status;
  return check_memory(settings, machine_memory());
}

}  // namespace rnic::verbs

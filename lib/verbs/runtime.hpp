/// \file
/// What stands behind a Context: ports, devices, workers, the clock.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <type_traits>
#include <vector>

#include "base/fail.hpp"
#include "base/time.hpp"
#include "device/device.hpp"
#include "impair/impair.hpp"
#include "pcap/pcap.hpp"
#include "port/port.hpp"
#include "settings/settings.hpp"
#include "socket/transport.hpp"
#include "verbs/worker.hpp"

namespace rnic::verbs {

class Runtime;

/// One device with everything under it, innermost first.
struct DeviceRuntime {
  Runtime* runtime = nullptr;
  Worker* worker = nullptr;  // nullptr: inline
  std::string name;
  std::string port_name;             // as the configuration has it
  std::unique_ptr<port::Port> port;  // the real one; nullptr: on sockets
  std::unique_ptr<socket::Transport> socket;
  std::unique_ptr<impair::ImpairedPort> impaired;
  std::unique_ptr<pcap::CapturePort> capture;
  std::unique_ptr<net::Reassembler> reassembler;
  std::unique_ptr<device::Device> device;
};

class Runtime {
 public:
  static Result<std::unique_ptr<Runtime>> open(const settings::Settings& settings);
  ~Runtime();
  Runtime(const Runtime&) = delete;
  Runtime& operator=(const Runtime&) = delete;

  [[nodiscard]] base::Now now() const { return clock_(); }
  [[nodiscard]] bool threaded() const { return !workers_.empty(); }
  [[nodiscard]] std::vector<std::unique_ptr<DeviceRuntime>>& devices() { return devices_; }
  uint32_t poll();
  [[nodiscard]] base::Now next_deadline() const;
  [[nodiscard]] const std::string& environment() const { return environment_; }

 private:
  Runtime() = default;

  Status start_eal(const settings::Settings& settings);
  void start_without_eal();
  Status open_ports(const settings::Settings& settings);
  Status open_decorators(const settings::DeviceSettings& settings, DeviceRuntime& runtime);
  Status start_devices(const settings::Settings& settings);
  Status start_on_port(const device::DeviceConfig& config, DeviceRuntime& runtime);
  Status start_on_socket(const settings::DeviceSettings& settings,
                         const device::DeviceConfig& config, DeviceRuntime& runtime);
  Status start_workers(const settings::Settings& settings);

  Clock clock_;
  std::string environment_;
  std::vector<std::unique_ptr<DeviceRuntime>> devices_;
  std::vector<std::unique_ptr<Worker>> workers_;  // stop before the devices go
};

/// Carries `call(now)` out where the device lives and returns what it returned.
template <typename F>
auto on_worker(DeviceRuntime& device, F&& call) -> decltype(call(base::Now{})) {
  if (device.worker == nullptr) return call(device.runtime->now());
  using R = decltype(call(base::Now{}));
  if constexpr (std::is_void_v<R>) {
    device.worker->run([&](base::Now now) { call(now); });
  } else {
    std::optional<R> result;
    device.worker->run([&](base::Now now) { result.emplace(call(now)); });
    return std::move(*result);
  }
}

}  // namespace rnic::verbs

/// \file
/// What stands behind a Context: ports, devices, workers, the clock.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <type_traits>
#include <vector>

#include "base/fail.hpp"
#include "base/time.hpp"
#include "device/device.hpp"
#include "impair/impair.hpp"
#include "pcap/pcap.hpp"
#include "port/port.hpp"
#include "process/generation.hpp"
#include "settings/settings.hpp"
#include "socket/transport.hpp"
#include "verbs/activity.hpp"
#include "verbs/boundary.hpp"
#include "verbs/mapped_memory.hpp"
#include "verbs/queue_alarm.hpp"
#include "verbs/sleeper.hpp"
#include "verbs/worker.hpp"
#include "wakeup/poller.hpp"

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
  QueueAlarm* event_alarm = nullptr;  // the device's; nullptr: nobody has asked for a descriptor
  bool arms_driver = false;           // inline: who waits for events waits for the device, too
  bool asked = true;  // inline: work was added, or a call made, since the latest turn
  const uint32_t generation = process::Generation::now();

  /// It is the parent's: this process was forked since, and touches none of it.
  [[nodiscard]] bool is_abandoned() const { return generation != process::Generation::now(); }
  /// Work was added: wakes who drives the device.
  void wake();
  /// Device::event_fd().
  Result<int> event_fd();
  /// Made when it is first asked for.
  Result<QueueAlarm*> alarm_of_events();
  /// The oldest event; nothing when there is none.
  std::optional<Event> poll_event();
  /// Inline: one turn. \return what it served
  uint32_t turn();
};

class Runtime {
 public:
  /// Ends a runtime; one that is abandoned stays as it is, because everything in it is the
  /// parent's: rings and pools may be shared memory, the numbers of descriptors other files by now,
  /// threads are not here to be joined, and a lock may be held for ever.
  struct End {
    void operator()(Runtime* runtime) const noexcept;
  };
  using Owner = std::unique_ptr<Runtime, End>;

  static Result<Owner> open(const settings::Settings& settings);
  ~Runtime();
  Runtime(const Runtime&) = delete;
  Runtime& operator=(const Runtime&) = delete;

  /// See DeviceRuntime::is_abandoned().
  [[nodiscard]] bool is_abandoned() const { return generation_ != process::Generation::now(); }
  [[nodiscard]] base::Now now() const { return clock_(); }
  [[nodiscard]] bool threaded() const { return !workers_.empty(); }
  [[nodiscard]] std::vector<std::unique_ptr<DeviceRuntime>>& devices() { return devices_; }
  /// What may be registered.
  [[nodiscard]] const ProcessMaps& maps() const { return maps_; }
  uint32_t poll();
  [[nodiscard]] base::Now next_deadline() const;

  /// What is readable when poll() has something to do. Inline; it is opened when first asked for.
  Result<int> driver_fd();
  /// The same, or a device has events: Context::fd().
  Result<int> fd();
  /// Inline, behind driver_fd(): Context::arm().
  bool arm();
  /// Inline: serves what was asked for since the latest turn, and arms.
  void settle();
  /// Work was added by the thread that polls.
  void disturb();
  /// Context::wait_until().
  bool wait_until(const std::function<bool()>& done, base::Now deadline);
  [[nodiscard]] const std::string& environment() const { return environment_; }

 private:
  Runtime() = default;
  void keep_for_ever() noexcept;

  Status start_eal(const settings::Settings& settings);
  void start_without_eal();
  Status open_ports(const settings::Settings& settings);
  Status open_decorators(const settings::DeviceSettings& settings, DeviceRuntime& runtime);
  Status start_devices(const settings::Settings& settings);
  Status start_on_port(const device::DeviceConfig& config, DeviceRuntime& runtime);
  Status start_on_socket(const settings::DeviceSettings& settings,
                         const device::DeviceConfig& config, DeviceRuntime& runtime);
  Status start_workers(const settings::Settings& settings);
  [[nodiscard]] settings::WorkerSettings::Idle idle_of(
      const settings::WorkerSettings& worker) const;
  Result<Sleeper*> sleeper();
  [[nodiscard]] bool is_asked() const;
  bool drive_until(const std::function<bool()>& done, base::Now deadline);
  bool watch_until(const std::function<bool()>& done, base::Now deadline);

  const process::Generation::Use use_;  // before the number of the generation is taken
  const uint32_t generation_ = process::Generation::now();
  Runtime* kept_before_ = nullptr;  // of those that are abandoned
  Clock clock_;
  ProcessMaps maps_;
  std::string environment_;
  settings::WorkerSettings::Idle idle_ = settings::WorkerSettings::Idle::Sleep;  // never Auto
  std::vector<std::unique_ptr<DeviceRuntime>> devices_;
  std::unique_ptr<Sleeper> sleeper_;  // inline, once somebody sleeps
  std::optional<wakeup::Poller> fd_;  // of the sleeper's and of the events'
  Activity activity_;
  std::vector<std::unique_ptr<Worker>> workers_;  // stop before the devices go
};

/// Carries `call(now)` out where the device lives and returns what it returned. Throws
/// AbandonedRuntime in a child of the process that the device lives in.
template <typename F>
auto on_worker(DeviceRuntime& device, F&& call) -> decltype(call(base::Now{})) {
  if (device.is_abandoned()) throw AbandonedRuntime();
  if (device.worker == nullptr) {
    device.wake();
    const base::Now now = device.runtime->now();
    device.device->begin_call(now);
    return call(now);
  }
  using R = decltype(call(base::Now{}));
  if constexpr (std::is_void_v<R>) {
    device.worker->run([&](base::Now now) {
      device.device->begin_call(now);
      call(now);
    });
  } else {
    std::optional<R> result;
    device.worker->run([&](base::Now now) {
      device.device->begin_call(now);
      result.emplace(call(now));
    });
    return std::move(*result);
  }
}

}  // namespace rnic::verbs

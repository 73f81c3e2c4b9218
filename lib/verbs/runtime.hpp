/// \file
/// Runtime: the implementation of a Context, with its ports, devices, workers and clock.
#pragma once

#include <atomic>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <type_traits>
#include <vector>

#include "base/fail.hpp"
#include "base/time.hpp"
#include "device/device.hpp"
#include "faults/faults.hpp"
#include "impair/impair.hpp"
#include "pcap/pcap.hpp"
#include "port/port.hpp"
#include "process/generation.hpp"
#include "recorder/recorder.hpp"
#include "settings/settings.hpp"
#include "socket/transport.hpp"
#include "verbs/activity.hpp"
#include "verbs/boundary.hpp"
#include "verbs/mapped_memory.hpp"
#include "verbs/queue_alarm.hpp"
#include "verbs/sleeper.hpp"
#include "verbs/spin_window.hpp"
#include "verbs/worker.hpp"
#include "wakeup/core_wait.hpp"
#include "wakeup/poller.hpp"

namespace rnic::verbs {

class Runtime;

/// One device with everything under it, innermost first. No line of it holds something of another
/// device, which another thread may drive.
struct alignas(64) DeviceRuntime {
  Runtime* runtime = nullptr;
  Worker* worker = nullptr;  // nullptr: inline
  std::string name;
  std::string port_name;             // as the configuration has it
  std::unique_ptr<port::Port> port;  // the real one; nullptr: on sockets
  std::unique_ptr<recorder::RecordingSystem> recorder;  // on sockets
  std::unique_ptr<socket::Transport> socket;
  std::unique_ptr<impair::ImpairedPort> impaired;
  std::unique_ptr<pcap::CapturePort> capture;
  std::unique_ptr<faults::FaultPort> faults;  // above the capture, which shows what it does
  std::unique_ptr<net::Reassembler> reassembler;
  std::unique_ptr<device::Device> device;
  QueueAlarm* event_alarm = nullptr;  // the device's; nullptr: nobody has asked for a descriptor
  bool arms_driver = false;           // inline: a wait for events waits for the device, too
  std::atomic<bool> has_desk{false};  // somebody has an EventDesk of the device
  bool several_threads = false;       // all its queues may be used by several threads at once
  /// Inline: work was added, or a call made, since the latest turn. Only a hint where several
  /// threads add work: what they have added is found by the look at the doorbells behind arm().
  std::atomic<bool> asked{true};
  const uint32_t generation = process::Generation::now();
  const uint32_t number = next_number();  // no other device of the process has it, and never 0

  /// \return whether the runtime belongs to the parent: this process was forked since, and must not
  /// touch it
  [[nodiscard]] bool is_abandoned() const { return generation != process::Generation::now(); }
  /// Work was added: wakes the thread that drives the device. Inline: called by that thread.
  void wake();
  /// A guess, for a thread that is about to post. \return whether it may serve by itself what it
  /// posts: nobody else drives
  [[nodiscard]] bool may_serve_post() const {
    return worker == nullptr || worker->may_serve_post();
  }
  /// Work was posted to a queue pair or a shared receive queue.
  /// \param any_thread inline: the thread that posts may be another one than drives the device
  void posted(Posted what, bool any_thread);
  /// Threaded: does a turn, unless another thread drives; for a thread that waits for something.
  /// \return whether a turn was done
  bool drive() { return worker != nullptr && worker->drive(); }
  /// Threaded: the thread is about to sleep.
  void take_over() {
    if (worker != nullptr) worker->take_over();
  }
  /// Implements Device::event_fd().
  Result<int> event_fd();
  /// The alarm of the device's events, made at the first call.
  Result<QueueAlarm*> alarm_of_events();
  /// The oldest event; nothing when there is none.
  std::optional<Event> poll_event();
  /// Inline: does one turn. \return frames and doorbells served
  uint32_t turn(device::Turn what = device::Turn::Whole);

 private:
  static uint32_t next_number();
};

class Runtime {
 public:
  /// Ends a runtime, unless it is abandoned: then it stays as it is, because everything in it
  /// belongs to the parent. Rings and pools may be shared memory, descriptors may be other files by
  /// now, there are no threads to be joined, and a lock may be held for ever.
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
  [[nodiscard]] const std::vector<std::unique_ptr<DeviceRuntime>>& devices() const {
    return devices_;
  }
  /// The mappings of the process, which decide what memory may be registered.
  [[nodiscard]] const ProcessMaps& maps() const { return maps_; }
  uint32_t poll();
  [[nodiscard]] base::Now next_deadline() const;

  /// Inline: the descriptor that is readable when poll() has something to do, opened at the first
  /// call.
  Result<int> driver_fd();
  /// Implements Context::fd(): readable as driver_fd() is, or while a device has events.
  Result<int> fd();
  /// Implements Context::arm().
  bool arm();
  /// Inline: serves what was asked for since the latest turn, then arms.
  void settle();
  /// Inline, for the thread that polls: it has posted to a queue pair that had nothing to send.
  /// Where threads sleep on descriptors the first post behind a wake-up is served at once, which
  /// costs less than to make a descriptor readable; more are likely to come behind it, and are
  /// served together. \return whether it was served
  bool serve_post(DeviceRuntime& device);
  /// Inline: work was added by the thread that polls.
  void disturb();
  /// Inline: work was added by any thread.
  void disturb_from_any_thread();
  /// Implements Context::wait_until().
  bool wait_until(const std::function<bool()>& done, base::Now deadline);
  [[nodiscard]] const std::string& environment() const { return environment_; }

 private:
  using Idle = settings::WorkerSettings::Idle;

  Runtime() = default;
  void keep_for_ever() noexcept;

  Status start_eal(const settings::Settings& settings);
  void start_without_eal(const settings::Settings& settings);
  Status open_ports(const settings::Settings& settings);
  Status open_decorators(const settings::DeviceSettings& settings, DeviceRuntime& runtime);
  Status start_devices(const settings::Settings& settings);
  Status start_on_port(const device::DeviceConfig& config, DeviceRuntime& runtime);
  Status start_on_socket(const settings::DeviceSettings& settings,
                         const device::DeviceConfig& config, DeviceRuntime& runtime);
  Status start_workers(const settings::Settings& settings);
  [[nodiscard]] static base::Duration longest_spin(Idle idle, size_t drivers);
  Result<Sleeper*> sleeper();
  /// As sleeper(); nullptr without a descriptor or memory for it.
  Sleeper* sleeper_or_none();
  /// \return whether a thread that waits sleeps in the kernel
  [[nodiscard]] bool sleeps() const {
    return idle_ == Idle::Sleep || idle_ == Idle::Auto;
  }
  [[nodiscard]] bool is_asked() const;
  bool drive_until(const std::function<bool()>& done, base::Now deadline);
  bool doze(Sleeper& sleeper, base::Now time, base::Now until, const std::function<bool()>& done);
  bool watch_until(const std::function<bool()>& done, base::Now deadline);

  const process::Generation::Use use_;  // before the number of the generation is taken
  const uint32_t generation_ = process::Generation::now();
  Runtime* kept_before_ = nullptr;  // the list of abandoned ones
  Clock clock_;
  ProcessMaps maps_;
  std::string environment_;
  Idle idle_ = Idle::Auto;
  std::vector<std::unique_ptr<DeviceRuntime>> devices_;
  std::unique_ptr<Sleeper> sleeper_;        // inline, once somebody sleeps
  SpinWindow spin_{SpinWindow::kLongest};   // inline: of a thread in wait_until()
  wakeup::CoreWait core_wait_;              // inline: of the thread that has made the sleeper
  bool serves_next_post_ = false;           // inline: none was served since the latest wake-up
  std::atomic<Sleeper*> to_ring_{nullptr};  // the same one, for threads that do not drive
  std::optional<wakeup::Poller> fd_;        // of the sleeper's descriptor and the events'
  Activity activity_;
  std::vector<std::unique_ptr<Worker>> workers_;  // stop before the devices go
};

/// Carries `call(now)` out on the device's thread and returns its result. Throws AbandonedRuntime
/// in a child of the process that the device belongs to.
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

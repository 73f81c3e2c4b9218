#include "verbs/runtime.hpp"

#include <sys/random.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <map>

#include "base/log.hpp"
#include "crc/crc.hpp"
#include "dpdk/dpdk.hpp"
#include "local/local.hpp"
#include "pcap/pcap.hpp"
#include "verbs/machine_check.hpp"

namespace rnic::verbs {

using base::fail;

namespace {

bool is_used(const settings::WireSettings& wire, const settings::Settings& settings) {
  const std::string ends = std::string(settings::kWirePrefix) + wire.name + ":";
  return std::any_of(
      settings.devices.begin(), settings.devices.end(),
      [&](const settings::DeviceSettings& device) { return device.port.starts_with(ends); });
}

Result<uint64_t> system_random() {
  uint64_t value = 0;
  if (getrandom(&value, sizeof value, 0) != sizeof value) {
    return fail(ErrorCode::Environment,
                "the system gave no random numbers (getrandom failed): use a system that has it");
  }
  return value;
}

/// The seed of an impaired port, given or drawn. It is logged, so that a run can be repeated.
Result<uint64_t> impair_seed(const settings::DeviceSettings& settings) {
  uint64_t seed = settings.impair.seed;
  if (!settings.impair.seed_given) {
    auto drawn = system_random();
    if (!drawn) return drawn;
    seed = *drawn >> 1;  // the file's numbers end at 2^63 - 1
  }
  if (!settings.impair.config.harmless()) {
    const std::string key = "device." + settings.config.name + ".impair.seed";
    base::log(base::LogLevel::Warning, "verbs", [&] {
      return settings.config.name + ": its frames are damaged on purpose ([device.impair]); " +
             key + "=" + std::to_string(seed) + " does the same again";
    });
  }
  return seed;
}

/// Says in the log what the device will do wrong.
void tell_faults(const device::DeviceConfig& config) {
  if (config.faults.empty()) return;
  base::log(base::LogLevel::Warning, "verbs", [&] {
    std::string lines;
    for (const PlannedFault& fault : config.faults) {
      lines += (lines.empty() ? "" : "; ") + to_string(fault);
    }
    return config.name + ": it does wrong on purpose (device.fault): " + lines;
  });
}

Status give_secrets(const settings::DeviceSettings& settings, device::DeviceConfig& config) {
  if (!settings.random_secret) {
    config.net.seed = config.seed;
    base::log(base::LogLevel::Warning, "verbs", [&] {
      return config.name +
             ": random_secret = false: ports, STags, keys and sequence numbers come "
             "from seed " +
             std::to_string(config.seed) + " and can be guessed by anybody: only for tests";
    });
    return {};
  }
  for (uint64_t* word : {&config.secret[0], &config.secret[1], &config.net.seed}) {
    auto random = system_random();
    if (!random) return tl::unexpected(random.error());
    *word = *random;
  }
  return {};
}

}  // namespace

/// A child goes on behind its parent's numbers, so that it knows no device by the number of one of
/// the parent's.
uint32_t DeviceRuntime::next_number() {
  static std::atomic<uint32_t> latest{0};
  uint32_t number = 0;
  while (number == 0) number = latest.fetch_add(1, std::memory_order_relaxed) + 1;
  return number;
}

void Runtime::End::operator()(Runtime* runtime) const noexcept {
  if (runtime->is_abandoned()) {
    runtime->keep_for_ever();
  } else {
    delete runtime;
  }
}

/// Keeps an abandoned runtime in a list: otherwise a leak checker would count it as lost.
void Runtime::keep_for_ever() noexcept {
  static constinit std::atomic<Runtime*> latest{nullptr};
  kept_before_ = latest.exchange(this);
}

Result<Runtime::Owner> Runtime::open(const settings::Settings& settings) {
  if (needs_eal(settings)) {
    if (auto status = dpdk::Eal::check_process(); !status) return tl::unexpected(status.error());
  }
  if (auto status = check_machine(settings); !status) {
    return tl::unexpected(status.error());
  }
  Owner runtime(new Runtime);
  if (!needs_eal(settings)) {
    runtime->start_without_eal(settings);
  } else if (auto status = runtime->start_eal(settings); !status) {
    return tl::unexpected(status.error());
  }
  if (auto status = runtime->open_ports(settings); !status) return tl::unexpected(status.error());
  if (auto status = runtime->start_devices(settings); !status) {
    return tl::unexpected(status.error());
  }
  runtime->idle_ = settings.worker.idle;
  runtime->spin_ = SpinWindow(longest_spin(settings.worker.idle, 1));
  if (settings.worker.mode == settings::WorkerSettings::Mode::Threaded) {
    if (auto status = runtime->start_workers(settings); !status) {
      return tl::unexpected(status.error());
    }
  }
  return runtime;
}

Runtime::~Runtime() {
  workers_.clear();
  for (auto& device : devices_) {
    if (device->device != nullptr) device->device->shut_down(now());
    device->device.reset();
  }
}

Status Runtime::start_eal(const settings::Settings& settings) {
  if (auto status = dpdk::Eal::init(eal_config(settings)); !status) return status;
  auto clock = dpdk::TscClock::create();
  if (!clock) return tl::unexpected(clock.error());
  const base::Now origin = clock->now();
  // Both fit into the function itself. Memory of their own might share a line with what one thread
  // writes, which the others would wait for whenever they ask for the time.
  clock_ = [clock = *clock, origin] {
    return base::Now(std::chrono::seconds(1) + (clock.now() - origin));
  };
  environment_ =
      "memory: " + dpdk::Eal::description() + "; CRC kernel: " + std::string(crc::active().name);
  return {};
}

void Runtime::start_without_eal(const settings::Settings& settings) {
  const auto origin = std::chrono::steady_clock::now();
  clock_ = [origin] {
    return base::Now(std::chrono::seconds(1) + (std::chrono::steady_clock::now() - origin));
  };
  const bool local = std::any_of(
      settings.devices.begin(), settings.devices.end(),
      [](const settings::DeviceSettings& device) { return device.on_local(); });
  environment_ = std::string(local ? "frames: on local wires" : "TCP: the system's") +
                 "; CRC kernel: " + std::string(crc::active().name);
}

Status Runtime::open_ports(const settings::Settings& settings) {
  std::map<std::string, std::unique_ptr<port::Port>> wire_ends;
  std::map<std::string, port::MacAddress> macs;
  for (const settings::DeviceSettings& device : settings.devices) macs[device.port] = device.mac;
  for (const settings::WireSettings& wire : settings.wires) {
    if (!is_used(wire, settings)) continue;
    const std::string a = std::string(settings::kWirePrefix) + wire.name + ":0";
    const std::string b = std::string(settings::kWirePrefix) + wire.name + ":1";
    dpdk::RingPairOptions options;
    options.mac_a = macs[a];
    options.mac_b = macs[b];
    options.mtu = wire.mtu;
    options.ring_size = wire.ring_size;
    options.pool_size = wire.ring_size * 4;
    options.one_thread = settings.worker.mode == settings::WorkerSettings::Mode::Inline ||
                         settings.worker.threads(settings.devices.size()) == 1;
    auto pair = dpdk::open_ring_pair(wire.name + ":0", wire.name + ":1", options);
    if (!pair) return tl::unexpected(pair.error());
    wire_ends[a] = std::move(pair->first);
    wire_ends[b] = std::move(pair->second);
  }
  for (const settings::DeviceSettings& device : settings.devices) {
    auto runtime = std::make_unique<DeviceRuntime>();
    runtime->runtime = this;
    runtime->name = device.config.name;
    runtime->port_name = device.port;
    runtime->several_threads = device.several_threads;
    if (device.on_socket()) {
      devices_.push_back(std::move(runtime));
      continue;
    }
    if (device.port.starts_with(settings::kWirePrefix)) {
      runtime->port = std::move(wire_ends[device.port]);
    } else if (device.on_local()) {
      auto port = local::LocalPort::open(local_options(device));
      if (!port) return tl::unexpected(port.error());
      runtime->port = std::move(*port);
    } else {
      dpdk::PortOptions options;
      options.mtu = device.mtu;
      if (device.mac_given) options.mac = device.mac;
      auto port = dpdk::open_port(device.port, options);
      if (!port) return tl::unexpected(port.error());
      runtime->port = std::move(*port);
    }
    RNIC_CHECK(runtime->port != nullptr);
    if (auto status = open_decorators(device, *runtime); !status) return status;
    devices_.push_back(std::move(runtime));
  }
  return {};
}

Status Runtime::open_decorators(const settings::DeviceSettings& settings, DeviceRuntime& runtime) {
  port::Port* outermost = runtime.port.get();
  if (settings.impair.enabled) {
    auto seed = impair_seed(settings);
    if (!seed) return tl::unexpected(seed.error());
    runtime.impaired =
        std::make_unique<impair::ImpairedPort>(*outermost, settings.impair.config, *seed);
    outermost = runtime.impaired.get();
  }
  if (!settings.capture.file.empty()) {
    pcap::WriterOptions options;
    options.comment = pcap::kOfWireshark;
    auto capture = pcap::CapturePort::open(*outermost, settings.capture.file, options);
    if (!capture) return tl::unexpected(capture.error());
    runtime.capture = std::move(*capture);
    outermost = runtime.capture.get();
  }
  if (settings.has_frame_faults()) {
    runtime.faults = std::make_unique<faults::FaultPort>(*outermost, settings.config.name,
                                                         settings.config.faults);
  }
  return {};
}

Status Runtime::start_devices(const settings::Settings& settings) {
  for (size_t i = 0; i < devices_.size(); ++i) {
    DeviceRuntime& runtime = *devices_[i];
    device::DeviceConfig config = settings.devices[i].config;
    config.net.mtu = settings.devices[i].mtu;
    if (auto status = give_secrets(settings.devices[i], config); !status) return status;
    tell_faults(config);
    Status started = settings.devices[i].on_socket()
                         ? start_on_socket(settings.devices[i], config, runtime)
                         : start_on_port(config, runtime);
    if (!started) return started;
  }
  return {};
}

Status Runtime::start_on_port(const device::DeviceConfig& config, DeviceRuntime& runtime) {
  port::Port* outermost = runtime.faults     ? runtime.faults.get()
                          : runtime.capture  ? runtime.capture.get()
                          : runtime.impaired ? runtime.impaired.get()
                                             : runtime.port.get();
  // The reassembler is DPDK's; without DPDK fragments are dropped, and counted.
  if (dpdk::Eal::started() && config.net.reassembly_datagrams != 0 &&
      config.net.fragments != net::FragmentPolicy::Drop) {
    dpdk::ReassemblerOptions options;
    const bool one = config.net.fragments == net::FragmentPolicy::One;
    options.datagrams = one ? 1 : config.net.reassembly_datagrams;
    options.mtu = config.net.mtu;
    options.timeout = config.net.reassembly_timeout;
    auto reassembler = dpdk::make_reassembler(options);
    if (!reassembler) return tl::unexpected(reassembler.error());
    runtime.reassembler = std::move(*reassembler);
  }
  runtime.device =
      std::make_unique<device::Device>(config, *outermost, now(), runtime.reassembler.get());
  return {};
}

Status Runtime::start_on_socket(const settings::DeviceSettings& settings,
                                const device::DeviceConfig& config, DeviceRuntime& runtime) {
  if (!settings.capture.file.empty()) {
    auto recorder =
        recorder::RecordingSystem::open(socket::own_system(), settings.capture.file, clock_);
    if (!recorder) return tl::unexpected(recorder.error());
    runtime.recorder = std::move(*recorder);
  }
  socket::System& system =
      runtime.recorder == nullptr ? socket::own_system() : *runtime.recorder;
  auto transport = socket::Transport::open(settings.socket, now(), system);
  if (!transport) return tl::unexpected(transport.error());
  runtime.socket = std::move(*transport);
  runtime.device = std::make_unique<device::Device>(config, *runtime.socket, now());
  return {};
}

/// With more threads than cores one that looks for work keeps another from adding some.
/// \param drivers the threads that drive devices; there is another one at least
base::Duration Runtime::longest_spin(Idle idle, size_t drivers) {
  if (idle != Idle::Auto) return SpinWindow::kFirst;
  const bool crowded = drivers + 1 > std::thread::hardware_concurrency();
  return crowded ? SpinWindow::kShortest : SpinWindow::kLongest;
}

Status Runtime::start_workers(const settings::Settings& settings) {
  const size_t count = settings.worker.threads(devices_.size());
  for (size_t i = 0; i < count; ++i) {
    Worker::Options options;
    options.idle = idle_;
    options.longest_spin = longest_spin(idle_, count);
    if (i < settings.worker.cores.size()) options.core = settings.worker.cores[i];
    std::vector<device::Device*> driven;
    for (size_t d = i; d < devices_.size(); d += count) driven.push_back(devices_[d]->device.get());
    auto worker = Worker::start(options, clock_, std::move(driven), activity_);
    if (!worker) return tl::unexpected(worker.error());
    workers_.push_back(std::move(*worker));
    for (size_t d = i; d < devices_.size(); d += count) devices_[d]->worker = workers_.back().get();
  }
  return {};
}

uint32_t Runtime::poll() {
  if (threaded() || is_abandoned()) return 0;
  uint32_t work = 0;
  for (auto& device : devices_) work += device->turn();
  if (sleeper_ != nullptr) sleeper_->check_timer();
  serves_next_post_ = true;
  return work;
}

base::Now Runtime::next_deadline() const {
  base::Now next = base::kNever;
  if (threaded() || is_abandoned()) return next;
  for (const auto& device : devices_) {
    next = base::earlier(next, device->device->next_deadline());
  }
  return next;
}

}  // namespace rnic::verbs

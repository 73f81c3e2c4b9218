// A handle of the public API: a device, its listeners, events and counters.

#include <functional>
#include <memory>
#include <string>
#include <utility>

#include "base/fail.hpp"
#include "rnic/verbs.hpp"
#include "verbs/belonging.hpp"
#include "verbs/boundary.hpp"
#include "verbs/consumer_calls.hpp"
#include "verbs/desk_place.hpp"
#include "verbs/event_desk.hpp"
#include "verbs/runtime.hpp"

namespace rnic {

using verbs::check_device;
using verbs::guarded;
using verbs::guarded_or;
using verbs::on_worker;

const std::string& Device::name() const { return device_->name; }

IpAddress Device::address() const { return device_->device->config().net.address; }

std::vector<IpAddress> Device::addresses() const {
  return guarded_or(std::vector<IpAddress>{}, [&] {
    const net::Config& net = device_->device->config().net;
    std::vector<IpAddress> out;
    if (!net.address.is_unspecified()) out.push_back(net.address);
    for (const net::Prefix& prefix : net.addresses) out.push_back(prefix.address);
    return out;
  });
}

const std::string& Device::port() const { return device_->port_name; }

uint32_t Device::mtu() const { return device_->device->config().net.mtu; }

Context Device::context() const {
  return Context(std::shared_ptr<verbs::Runtime>(device_, device_->runtime));
}

std::string Device::checksum_mode() const {
  if (!device_->device->has_port()) return "system";
  return port::to_string(device_->device->port().info().checksum);
}

Status Device::set_context(void* context) {
  return guarded("Device::set_context", [&]() -> Status {
    on_worker(*device_, [&](base::Now) { device_->device->set_context(context); });
    return {};
  });
}

Result<ProtectionDomain> Device::alloc_pd() { return verbs::alloc_pd(device_, 0); }

Result<CompletionQueue> Device::create_cq(uint32_t depth, const CompletionQueueOptions& options) {
  return verbs::create_cq(device_, depth, options, 0);
}

Result<PortReservation> Device::reserve(const Endpoint& local) {
  return verbs::reserve(device_, local, 0);
}

Result<Endpoint> Device::listen(PortReservation& port, const ListenOptions& options) {
  return verbs::listen(device_, port, options, 0);
}

Result<Endpoint> Device::listen(const Endpoint& local, const ListenOptions& options) {
  return verbs::listen(device_, local, options, 0);
}

Result<Endpoint> Device::listen(uint16_t port, const ListenOptions& options) {
  return listen(Endpoint{{}, port}, options);
}

Status Device::unlisten(const Endpoint& local) { return verbs::unlisten(device_, local, 0); }

Status Device::unlisten(uint16_t port) { return unlisten(Endpoint{{}, port}); }

Status Device::reject(const RequestHandle& request, std::span<const uint8_t> private_data) {
  return guarded("Device::reject", [&]() -> Status {
    if (auto ours = check_device("reject: the request", *device_, request.device); !ours) {
      return ours;
    }
    return on_worker(*device_, [&](base::Now now) {
      return device_->device->reject(request, base::ByteView(private_data), now);
    });
  });
}

std::optional<Event> Device::poll_event() { return device_->poll_event(); }

Result<int> Device::event_fd() {
  return guarded("Device::event_fd", [&] { return device_->event_fd(); });
}

uint32_t Device::poll() {
  if (device_->worker != nullptr) return 0;
  return device_->turn();
}

namespace {

/// Calls `visit(layer, row)` for each counter of everything under a device; on its worker.
template <typename F>
void for_each_counter(verbs::DeviceRuntime& device, F&& visit) {
  device.device->for_each_counter(std::ref(visit));
  const auto pass_on = [&visit](const char* layer, const auto& counters) {
    counters.for_each([&](const base::CounterRow& row) { visit(layer, row); });
  };
  if (device.socket != nullptr) pass_on("socket", device.socket->counters());
  if (device.impaired != nullptr) pass_on("impair", device.impaired->impair_counters());
  if (device.faults != nullptr) pass_on("faults", device.faults->fault_counters());
  if (device.capture != nullptr) {
    device.capture->flush();  // only a flush shows that the file system has no room
    pass_on("capture", device.capture->writer().counters());
  }
  if (device.recorder != nullptr) {
    device.recorder->flush();
    pass_on("capture", device.recorder->writer().counters());
    pass_on("recorder", device.recorder->counters());
  }
}

}  // namespace

std::vector<Counter> Device::counters() const {
  return guarded_or(std::vector<Counter>{}, [&] {
    std::vector<Counter> out;
    const auto add = [&](const char* layer, const base::CounterRow& row) {
      out.push_back({layer, row.name, row.unit, row.help, row.value});
    };
    on_worker(*device_, [&](base::Now) { for_each_counter(*device_, add); });
    return out;
  });
}

Result<uint64_t> Device::counter(const std::string& layer, const std::string& name) const {
  return guarded("Device::counter", [&]() -> Result<uint64_t> {
    std::optional<uint64_t> value;
    bool has_layer = false;
    const auto look = [&](const char* at, const base::CounterRow& row) {
      if (layer != at) return;
      has_layer = true;
      if (name == row.name) value = row.value;
    };
    on_worker(*device_, [&](base::Now) { for_each_counter(*device_, look); });
    if (value) return *value;
    return base::fail(ErrorCode::NotFound,
                      has_layer ? "counter: the layer \"" + layer + "\" has no counter \"" + name +
                                      "\": use one of Device::counters()"
                                : "counter: the device has no layer \"" + layer +
                                      "\" that counts: use one of Device::counters()");
  });
}

Result<DeviceLimits> Device::limits() const {
  return guarded("Device::limits", [&]() -> Result<DeviceLimits> {
    return on_worker(*device_, [&](base::Now) { return device_->device->limits(); });
  });
}

Result<std::vector<TerminateCount>> Device::terminates() const {
  return guarded("Device::terminates", [&]() -> Result<std::vector<TerminateCount>> {
    return on_worker(*device_, [&](base::Now) { return device_->device->terminates(); });
  });
}

Result<std::vector<ConnectionSummary>> Device::connections() const {
  return guarded("Device::connections", [&]() -> Result<std::vector<ConnectionSummary>> {
    auto found =
        on_worker(*device_, [&](base::Now now) { return device_->device->connections(now); });
    for (ConnectionSummary& connection : found) connection.id.device = device_->number;
    return found;
  });
}

Status Device::abort(const ConnectionId& id) {
  return guarded("Device::abort", [&]() -> Status {
    if (auto ours = check_device("abort: the connection", *device_, id.device); !ours) return ours;
    return on_worker(*device_, [&](base::Now) { return device_->device->abort(id); });
  });
}

bool Device::quiescent() const {
  return guarded_or(true, [&] {
    return on_worker(*device_, [&](base::Now) {
      return device_->device->quiescent() &&
             (device_->socket == nullptr || device_->socket->quiescent());
    });
  });
}

Result<std::shared_ptr<verbs::EventDesk>> Device::open_event_desk() {
  return guarded("Device::open_event_desk", [&]() -> Result<std::shared_ptr<verbs::EventDesk>> {
    if (device_->has_desk.exchange(true)) {
      return base::fail(ErrorCode::AlreadyExists,
                        "open: device " + name() +
                            " has an adapter already: copy that, or end it with its listeners and "
                            "connections");
    }
    verbs::DeskPlace place(&device_->has_desk);
    auto pd = alloc_pd();
    if (!pd) return tl::unexpected(std::move(pd.error()));
    return std::make_shared<verbs::EventDesk>(*this, std::move(place), std::move(*pd));
  });
}

}  // namespace rnic

#include "verbs/consumer_calls.hpp"

#include <algorithm>
#include <string>

#include "verbs/boundary.hpp"
#include "verbs/machine_memory.hpp"
#include "verbs/queue_lock.hpp"

namespace rnic::verbs {

Result<ProtectionDomain> alloc_pd(const DevicePtr& device, uint32_t consumer) {
  return guarded("alloc_pd", [&]() -> Result<ProtectionDomain> {
    const auto pd =
        on_worker(*device, [&](base::Now) { return device->device->alloc_pd(consumer); });
    if (!pd) return tl::unexpected(pd.error());
    return ProtectionDomain(device, *pd);
  });
}

Result<CompletionQueue> create_cq(const DevicePtr& device, uint32_t depth,
                                  const CompletionQueueOptions& options, uint32_t consumer) {
  return guarded("create_cq", [&]() -> Result<CompletionQueue> {
    const uint32_t deepest = device::deepest_cq(device->device->config().limits);
    if (const uint64_t octets = device::CompletionQueue::octets_for(std::min(depth, deepest));
        octets >= kWorthAsking) {
      auto enough = enough_memory("create_cq: " + std::to_string(depth) + " completions", octets);
      if (!enough) return tl::unexpected(enough.error());
    }
    auto lock = QueueLock::make_if(options.several_threads || device->several_threads);
    const auto cq = on_worker(
        *device, [&](base::Now) { return device->device->create_cq(depth, options, consumer); });
    if (!cq) return tl::unexpected(cq.error());
    return CompletionQueue(device, *cq, std::move(lock));
  });
}

Result<PortReservation> reserve(const DevicePtr& device, const Endpoint& local, uint32_t consumer) {
  return guarded("reserve", [&]() -> Result<PortReservation> {
    const auto reserved = on_worker(*device, [&](base::Now) {
      return device->device->reserved_ports().reserve(local, consumer);
    });
    if (!reserved) return tl::unexpected(reserved.error());
    return PortReservation(device, *reserved);
  });
}

namespace {

Result<Endpoint> listen_on(const DevicePtr& device, PortUse port, const ListenOptions& options,
                           uint32_t consumer) {
  if (!port.status()) return tl::unexpected(port.status().error());
  auto listening = on_worker(*device, [&](base::Now) {
    return device->device->listen(port.local(), options, consumer, port.claim());
  });
  if (listening) port.done();
  return listening;
}

}  // namespace

Result<Endpoint> listen(const DevicePtr& device, const Endpoint& local,
                        const ListenOptions& options, uint32_t consumer) {
  return guarded("listen", [&] { return listen_on(device, PortUse(local), options, consumer); });
}

Result<Endpoint> listen(const DevicePtr& device, PortReservation& port,
                        const ListenOptions& options, uint32_t consumer) {
  return guarded("listen", [&] {
    return listen_on(device, PortUse("listen", port, *device), options, consumer);
  });
}

Status unlisten(const DevicePtr& device, const Endpoint& local, uint32_t consumer) {
  return guarded("unlisten", [&]() -> Status {
    return on_worker(*device, [&](base::Now) { return device->device->unlisten(local, consumer); });
  });
}

}  // namespace rnic::verbs

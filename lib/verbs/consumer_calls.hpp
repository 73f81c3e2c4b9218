/// \file
/// The calls that an application makes for one of its consumers, or for itself (consumer 0).
#pragma once

#include <cstdint>
#include <memory>

#include "rnic/verbs.hpp"
#include "verbs/port_use.hpp"
#include "verbs/runtime.hpp"

namespace rnic::verbs {

using DevicePtr = std::shared_ptr<DeviceRuntime>;

Result<ProtectionDomain> alloc_pd(const DevicePtr& device, uint32_t consumer);
Result<CompletionQueue> create_cq(const DevicePtr& device, uint32_t depth,
                                  const CompletionQueueOptions& options, uint32_t consumer);
Result<PortReservation> reserve(const DevicePtr& device, const Endpoint& local, uint32_t consumer);
Result<Endpoint> listen(const DevicePtr& device, const Endpoint& local,
                        const ListenOptions& options, uint32_t consumer);
Result<Endpoint> listen(const DevicePtr& device, PortReservation& port,
                        const ListenOptions& options, uint32_t consumer);
Status unlisten(const DevicePtr& device, const Endpoint& local, uint32_t consumer);

}  // namespace rnic::verbs

/// \file
/// Consumer: a part of an application that shares a device with others which it does not trust
/// (RFC 5042 s.3, RFC 5041 s.8.3.2). Only applications that have several such parts need it.
#pragma once

#include <cstdint>
#include <memory>

#include "rnic/quotas.hpp"
#include "rnic/verbs.hpp"

namespace rnic {

/// What is made by these calls belongs to the consumer, and so does everything that is made from
/// its domains. It counts against the consumer's quotas (ResourceExhausted names the quota), and is
/// never used together with what belongs to another consumer, or to none (PermissionDenied): queue
/// pairs complete in queues of their own consumer only, and accept only requests of its listeners.
///
/// Consumers are parts of one process, and share its memory and the device's events: they keep
/// peers, resources and mistakes apart, not hostile code (docs/threat-model.md). The calls have the
/// errors, and belong to the threads, of those of Device.
///
///     auto consumer = device.create_consumer({.name = "index", .quotas = {.qps = 8}});
///     auto domain = consumer->alloc_pd();
///     auto queue = consumer->create_cq(256);
class Consumer {
 public:
  Consumer() = default;
  /// For Device::create_consumer(), which makes the consumers.
  Consumer(std::shared_ptr<verbs::DeviceRuntime> device, uint32_t number);
  Consumer(Consumer&& other) noexcept;
  Consumer& operator=(Consumer&& other) noexcept;
  /// What belongs to the consumer goes on as before, and counts against its quotas. Its listeners
  /// are ended by Device::unlisten() then.
  ~Consumer();
  /// Destroys the consumer and leaves the handle empty. WrongState while it has a domain, a queue,
  /// a listener or a request that nobody has answered: then nothing has changed.
  Status destroy();

  Result<ProtectionDomain> alloc_pd();
  /// As Device::create_cq().
  Result<CompletionQueue> create_cq(uint32_t depth, const CompletionQueueOptions& options = {});
  /// As Device::listen(). Beyond the quota of unanswered requests those of peers are reset (counter
  /// `requests_beyond_quota`).
  Result<Endpoint> listen(const Endpoint& local, const ListenOptions& options = {});
  /// As Device::reserve(): the port counts as a listener, and only this consumer listens there or
  /// connects from there.
  Result<PortReservation> reserve(const Endpoint& local = {});
  /// As Device::listen(). PermissionDenied: the port is reserved for another consumer, or for none.
  Result<Endpoint> listen(PortReservation& port, const ListenOptions& options = {});
  /// Ends a listen() of this consumer. A peer that has connected there and asks only now is reset
  /// (counter `requests_too_late`). \param local what listen() returned
  Status unlisten(const Endpoint& local);
  /// What the consumer may have, and what it has.
  [[nodiscard]] Result<ConsumerInfo> info() const;

 private:
  void swap(Consumer& other) noexcept;

  std::shared_ptr<verbs::DeviceRuntime> device_;
  uint32_t number_ = 0;
};

}  // namespace rnic

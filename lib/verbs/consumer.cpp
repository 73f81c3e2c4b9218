// A handle of the public API: a consumer.

#include "rnic/consumer.hpp"

#include <utility>

#include "verbs/boundary.hpp"
#include "verbs/consumer_calls.hpp"
#include "verbs/runtime.hpp"

namespace rnic {

using verbs::empty_handle;
using verbs::guarded;
using verbs::on_worker;
using verbs::quietly;

Result<Consumer> Device::create_consumer(const ConsumerOptions& options) {
  return guarded("Device::create_consumer", [&]() -> Result<Consumer> {
    const auto number = on_worker(
        *device_, [&](base::Now) { return device_->device->consumers().create(options); });
    if (!number) return tl::unexpected(number.error());
    return Consumer(device_, *number);
  });
}

Consumer::Consumer(std::shared_ptr<verbs::DeviceRuntime> device, uint32_t number)
    : device_(std::move(device)), number_(number) {}

Consumer::Consumer(Consumer&& other) noexcept { swap(other); }

Consumer& Consumer::operator=(Consumer&& other) noexcept {
  Consumer before(std::move(other));
  swap(before);
  return *this;
}

void Consumer::swap(Consumer& other) noexcept {
  std::swap(device_, other.device_);
  std::swap(number_, other.number_);
}

Consumer::~Consumer() {
  if (device_ == nullptr) return;
  quietly([this] {
    on_worker(*device_, [&](base::Now) { device_->device->consumers().release(number_); });
  });
}

Status Consumer::destroy() {
  if (device_ == nullptr) return {};
  return guarded("Consumer::destroy", [&]() -> Status {
    const Status status = on_worker(
        *device_, [&](base::Now) { return device_->device->consumers().destroy(number_); });
    if (status) device_ = nullptr;
    return status;
  });
}

Result<ProtectionDomain> Consumer::alloc_pd() {
  if (device_ == nullptr) return empty_handle();
  return verbs::alloc_pd(device_, number_);
}

Result<CompletionQueue> Consumer::create_cq(uint32_t depth, const CompletionQueueOptions& options) {
  if (device_ == nullptr) return empty_handle();
  return verbs::create_cq(device_, depth, options, number_);
}

Result<PortReservation> Consumer::reserve(const Endpoint& local) {
  if (device_ == nullptr) return empty_handle();
  return verbs::reserve(device_, local, number_);
}

Result<Endpoint> Consumer::listen(PortReservation& port, const ListenOptions& options) {
  if (device_ == nullptr) return empty_handle();
  return verbs::listen(device_, port, options, number_);
}

Result<Endpoint> Consumer::listen(const Endpoint& local, const ListenOptions& options) {
  if (device_ == nullptr) return empty_handle();
  return verbs::listen(device_, local, options, number_);
}

Status Consumer::unlisten(const Endpoint& local) {
  if (device_ == nullptr) return empty_handle();
  return verbs::unlisten(device_, local, number_);
}

Result<ConsumerInfo> Consumer::info() const {
  return guarded("Consumer::info", [&]() -> Result<ConsumerInfo> {
    if (device_ == nullptr) return empty_handle();
    return on_worker(*device_,
                     [&](base::Now) { return device_->device->consumers().info(number_); });
  });
}

}  // namespace rnic

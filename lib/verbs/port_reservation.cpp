// A handle of the public API: a port that is reserved.

#include "rnic/port_reservation.hpp"

#include <string>
#include <utility>

#include "verbs/boundary.hpp"
#include "verbs/port_use.hpp"
#include "verbs/runtime.hpp"

namespace rnic {

using verbs::guarded;
using verbs::on_worker;
using verbs::quietly;

namespace verbs {

PortUse::PortUse(const char* call, PortReservation& reservation, const DeviceRuntime& device)
    : reservation_(&reservation), local_(reservation.local_) {
  if (reservation.device_ == nullptr) {
    status_ = empty_handle();
  } else if (reservation.device_.get() != &device) {
    status_ = base::fail(ErrorCode::InvalidArgument,
                         std::string(call) + ": " + to_string(local_) + " is reserved at device " +
                             reservation.device_->name + ", and not at " + device.name +
                             ": use it there");
  }
}

void PortUse::done() {
  if (reservation_ != nullptr) reservation_->device_ = nullptr;
}

}  // namespace verbs

PortReservation::PortReservation(std::shared_ptr<verbs::DeviceRuntime> device,
                                 const Endpoint& local)
    : device_(std::move(device)), local_(local) {}

PortReservation::PortReservation(PortReservation&& other) noexcept { swap(other); }

PortReservation& PortReservation::operator=(PortReservation&& other) noexcept {
  PortReservation before(std::move(other));
  swap(before);
  return *this;
}

void PortReservation::swap(PortReservation& other) noexcept {
  std::swap(device_, other.device_);
  std::swap(local_, other.local_);
}

PortReservation::~PortReservation() {
  if (device_ == nullptr) return;
  quietly([this] {
    on_worker(*device_, [this](base::Now) {
      static_cast<void>(device_->device->reserved_ports().release(local_));
    });
  });
}

Status PortReservation::destroy() {
  if (device_ == nullptr) return {};
  return guarded("PortReservation::destroy", [this]() -> Status {
    const Status status = on_worker(
        *device_, [this](base::Now) { return device_->device->reserved_ports().release(local_); });
    if (status) device_ = nullptr;
    return status;
  });
}

Endpoint PortReservation::local() const {
  return device_ == nullptr || device_->is_abandoned() ? Endpoint{} : local_;
}

}  // namespace rnic

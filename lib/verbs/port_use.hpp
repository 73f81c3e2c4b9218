/// \file
/// PortUse: a call that may take a reserved port over.
#pragma once

#include "base/fail.hpp"
#include "llp/transport.hpp"
#include "rnic/port_reservation.hpp"
#include "rnic/verbs.hpp"
#include "verbs/runtime.hpp"

namespace rnic::verbs {

/// The port that a call of the API listens on or connects from.
class PortUse {
 public:
  /// A port that is free.
  explicit PortUse(const Endpoint& local) : local_(local) {}
  /// The port of a reservation, which outlives this.
  PortUse(const char* call, PortReservation& reservation, const DeviceRuntime& device);

  /// WrongState: the handle is empty. InvalidArgument: it is another device's.
  [[nodiscard]] const Status& status() const { return status_; }
  [[nodiscard]] const Endpoint& local() const { return local_; }
  [[nodiscard]] llp::PortClaim claim() const {
    return reservation_ == nullptr ? llp::PortClaim::None : llp::PortClaim::Reserved;
  }
  /// The call has succeeded: the port is what it has made it.
  void done();

 private:
  PortReservation* reservation_ = nullptr;  // nullptr: the port is to be free
  Endpoint local_;
  Status status_;
};

}  // namespace rnic::verbs

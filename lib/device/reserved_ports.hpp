/// \file
/// ReservedPorts: the ports that the application has reserved and not used yet.
#pragma once

#include <cstdint>
#include <map>

#include "device/consumers.hpp"
#include "device/listeners.hpp"
#include "device/port_stack.hpp"
#include "llp/transport.hpp"
#include "rnic/address.hpp"
#include "rnic/error.hpp"

namespace rnic::device {

/// Belongs to the worker. A reservation counts as a listener: against its consumer's quota, and in
/// the transport, which bounds the table.
class ReservedPorts {
 public:
  explicit ReservedPorts(Consumers& consumers) : consumers_(consumers) {}
  /// Called once, before anything else. \param own the stack that `transport` is part of; nullptr:
  /// the transport is another one \param listeners those of the device, which errors name
  void attach(llp::Transport& transport, const PortStack* own, const Listeners& listeners) {
    transport_ = &transport;
    own_ = own;
    listeners_ = &listeners;
  }

  /// \param local as for Device::listen()
  /// \return what is reserved, which names the reservation
  Result<Endpoint> reserve(const Endpoint& local, uint32_t consumer);
  /// Gives the port back. NotFound: the reservation was used.
  Status release(const Endpoint& reserved);

  // A call that claims a port (llp::PortClaim) checks first, and says what has become of it once
  // the transport has given the port away. With PortClaim::None these do nothing.

  /// NotFound: there is no such reservation. PermissionDenied: it is another consumer's.
  /// \param call begins the text of the error
  [[nodiscard]] Status check(const char* call, const Endpoint& reserved, uint32_t consumer,
                             llp::PortClaim claim) const;
  /// A listener of the same consumer has the port, with what the reservation counts for.
  void became_listener(const Endpoint& reserved, llp::PortClaim claim) {
    if (claim == llp::PortClaim::Reserved) all_.erase(listened_on(reserved));
  }
  /// Something has the port that counts against no quota of listeners.
  void used(const Endpoint& reserved, llp::PortClaim claim);

  /// The error of a transport that has refused `local`, with who has the port if that is known.
  [[nodiscard]] Error named(Error error, const Endpoint& local) const;
  /// Adds to each consumer's counts, which stand at its number, what it has here.
  void count(Consumers::Found& found) const {
    for (const auto& [local, consumer] : all_) ++found[consumer].listeners;
  }

 private:
  Consumers& consumers_;
  llp::Transport* transport_ = nullptr;
  const PortStack* own_ = nullptr;
  const Listeners* listeners_ = nullptr;
  std::map<Endpoint, uint32_t> all_;  // to the number of the consumer. Invariant: those of the
                                      // transport, and no two overlap
};

}  // namespace rnic::device

/// \file
/// PortReservation: a port that is this program's before it listens there or connects from it.
#pragma once

#include <memory>

#include "rnic/address.hpp"
#include "rnic/error.hpp"

namespace rnic {

namespace verbs {
class PortUse;
struct DeviceRuntime;
}  // namespace verbs

/// A port that is kept for who has the handle: Device::reserve() and Consumer::reserve() make it.
/// Nobody else listens there or connects from there, and the port is not chosen for anybody; over
/// sockets of the system that holds for all processes of the machine. Who connects to it is refused
/// as if there were no reservation. Connections that had the port before go on.
///
/// listen(), listen_stream(), listen_framed() and QueuePair::connect() take the port over: then the
/// handle is empty, and the port is the listener's or the connection's. If they fail the
/// reservation is as it was.
///
///     auto port = device.reserve(*parse_endpoint("10.0.0.1:0"));
///     tell(port->local());
///     device.listen(*port);
///
/// The port is free again as soon as the handle ends, or the process does, however that happens. In
/// a forked child it is not reserved (docs/threading-and-memory.md). One thread at a time for each
/// handle. See docs/connections.md (rdma_bind_addr() of rdma-core).
class PortReservation {
 public:
  PortReservation() = default;
  /// For Device::reserve() and Consumer::reserve().
  PortReservation(std::shared_ptr<verbs::DeviceRuntime> device, const Endpoint& local);
  PortReservation(PortReservation&& other) noexcept;
  PortReservation& operator=(PortReservation&& other) noexcept;
  /// Gives the port back.
  ~PortReservation();
  /// Gives the port back and leaves the handle empty.
  Status destroy();

  /// What is reserved: the address that was asked for, unspecified for all of the device, and the
  /// port. An unspecified address and port 0: the handle is empty, or this process's parent's.
  [[nodiscard]] Endpoint local() const;

 private:
  friend class verbs::PortUse;
  void swap(PortReservation& other) noexcept;

  std::shared_ptr<verbs::DeviceRuntime> device_;
  Endpoint local_;
};

}  // namespace rnic

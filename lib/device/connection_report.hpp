/// \file
/// ConnectionReport: what a connection is doing now, as the API reports it.
#pragma once

#include "device/connection.hpp"
#include "device/port_stack.hpp"
#include "device/queue_pair.hpp"
#include "llp/transport.hpp"
#include "rnic/device_info.hpp"

namespace rnic::device {

/// An object is made for one report, and holds the time of it.
class ConnectionReport {
 public:
  /// \param own the stack that `transport` is part of; nullptr: it is another transport. Both
  /// outlive the report.
  ConnectionReport(const llp::Transport& transport, const PortStack* own, base::Now now)
      : transport_(transport), own_(own), now_(now) {}

  /// \param connection the queue pair's; nullptr: it has none
  [[nodiscard]] QueuePairInfo info(const QueuePair& qp, const Connection* connection) const;
  [[nodiscard]] ConnectionSummary summary(const Connection& connection) const;

 private:
  [[nodiscard]] TransportInfo transport_of(const Connection& connection) const;
  [[nodiscard]] SendLimit limit_of(const QueuePair& qp, const Connection& connection,
                                   const TransportInfo& transport) const;

  const llp::Transport& transport_;
  const PortStack* own_;
  base::Now now_;
};

}  // namespace rnic::device

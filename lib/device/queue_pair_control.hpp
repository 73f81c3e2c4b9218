/// \file
/// QueuePairControl: how the application ends a queue pair's connection, changes it, and makes it
/// idle again.
#pragma once

#include "base/timer_wheel.hpp"
#include "device/config.hpp"
#include "device/connection_table.hpp"
#include "device/resources.hpp"

namespace rnic::device {

/// Belongs to the worker. Device documents the calls.
class QueuePairControl {
 public:
  /// \param config, connections, resources outlive it
  QueuePairControl(const DeviceConfig& config, ConnectionTable& connections, Resources& resources,
                   base::Now now)
      : config_(config), connections_(connections), resources_(resources), drains_(now) {}

  /// WrongState, with a text that says what to do first, unless the queue pair may get a
  /// connection.
  [[nodiscard]] Status check_unconnected(const QueuePair& qp) const;
  Status disconnect(QueuePair& qp);
  Status drain(QueuePair& qp, base::Duration limit, base::Now now);
  Status modify(QueuePair& qp, const QueuePairChange& change);

  [[nodiscard]] base::Now next_deadline() const { return drains_.next_deadline(); }
  void on_timers(base::Now now);
  /// The connection has ended.
  void end(Connection& connection) { connection.cancel_drain(drains_); }

 private:
  [[nodiscard]] Status check_state(const QueuePair& qp, QueuePairState next);
  [[nodiscard]] Status check_reads(const QueuePair& qp, const QueuePairChange& change);
  [[nodiscard]] bool is_free(const QueuePair& qp) {
    return connections_.get(qp.connection()) == nullptr;
  }
  void fail(QueuePair& qp);
  /// Moves the queue pair to the state, and sets IRD and ORD, as far as `change` gives them.
  Status enter(QueuePair& qp, const QueuePairChange& change);

  const DeviceConfig& config_;
  ConnectionTable& connections_;
  Resources& resources_;
  base::TimerWheel drains_;
};

}  // namespace rnic::device

/// \file
/// PendingRequests: requests of peers that wait for the application's answer.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "base/fail.hpp"
#include "base/slab.hpp"
#include "base/time.hpp"
#include "device/config.hpp"
#include "device/connection.hpp"
#include "device/connection_table.hpp"
#include "device/consumers.hpp"
#include "device/counters.hpp"
#include "device/listeners.hpp"

namespace rnic::device {

/// Belongs to the worker. It counts the requests of a device, and has each count at its listener,
/// its consumer and its peer.
class PendingRequests {
 public:
  /// All outlive it.
  PendingRequests(const DeviceConfig& config, ConnectionTable& connections, Listeners& listeners,
                  Consumers& consumers, DeviceCounters& counters);

  /// \return whether there are limits.max_pending_requests of them
  [[nodiscard]] bool full() const { return waiting_ >= config_.limits.max_pending_requests; }
  /// A whole Request has come. \return whether it may wait for an answer; otherwise its connection
  /// was refused
  bool admit(Connection& connection, base::Now now);
  /// NotFound: the request is gone, or has its answer.
  Result<Connection*> find(RequestHandle request);
  /// A request was answered, or its connection has ended before.
  void over(const Connection& connection);

  /// The event of a request found no room: reject_unheard() has it answered, since a callback of
  /// its own session is under way here. Takes no memory.
  void add_unheard(const Connection& connection) { unheard_.push_back(connection.handle()); }
  [[nodiscard]] bool has_unheard() const { return !unheard_.empty(); }
  /// Calls `reject(request)` for those, some of which may be gone.
  template <typename Reject>
  void reject_unheard(Reject&& reject) {
    for (const base::Handle handle : unheard_) {
      reject(RequestHandle{handle.index, handle.generation});
    }
    unheard_.clear();
  }

  /// Recounts the requests.
  void validate();

 private:
  void give_back(const Connection& connection);
  [[nodiscard]] uint32_t count(std::optional<uint64_t> listener);

  const DeviceConfig& config_;
  ConnectionTable& connections_;
  Listeners& listeners_;
  Consumers& consumers_;
  DeviceCounters& counters_;
  std::vector<base::Handle> unheard_;
  uint32_t waiting_ = 0;  // Invariant: <= limits.max_pending_requests
};

}  // namespace rnic::device

/// \file
/// The connections of a stack: found by 4-tuple, bounded, no allocation after construction.
#pragma once

#include <cstdint>
#include <utility>

#include "base/check.hpp"
#include "base/slab.hpp"
#include "rnic/address.hpp"
#include "tcp/connection.hpp"
#include "tcp/flow_table.hpp"
#include "tcp/isn.hpp"

namespace rnic::tcp {

class ConnectionTable {
 public:
  /// \param secret keys the hash, since remote hosts choose their endpoints
  ConnectionTable(uint32_t capacity, const Secret& secret)
      : connections_(capacity), flows_(capacity, secret) {}

  /// The memory that a table of this capacity takes.
  [[nodiscard]] static uint64_t octets_for(uint32_t capacity) {
    return base::Slab<Connection>::octets_for(capacity) + FlowTable::octets_for(capacity);
  }

  [[nodiscard]] uint32_t live() const { return connections_.live(); }
  [[nodiscard]] bool full() const { return live() == connections_.capacity(); }

  /// Makes a connection between two endpoints that have none. \param made the arguments of its
  /// constructor. \return nullptr: the table is full
  template <typename... Made>
  Connection* insert(const Endpoint& local, const Endpoint& remote, Made&&... made) {
    const base::Handle handle = connections_.emplace(std::forward<Made>(made)...);
    if (!handle.valid()) return nullptr;
    Connection& connection = connections_.at(handle.index);
    connection.name(handle, local, remote);
    flows_.insert(handle.index, local, remote);
    return &connection;
  }
  void erase(Connection& connection) {
    flows_.erase(connection.handle().index, connection.local(), connection.remote());
    if (last_ == &connection) last_ = nullptr;
    connections_.erase(connection.handle());
  }

  [[nodiscard]] bool contains(const Endpoint& local, const Endpoint& remote) const {
    return slot_of(local, remote) != FlowTable::kNone;
  }
  /// nullptr: there is none.
  [[nodiscard]] Connection* find(const Endpoint& local, const Endpoint& remote) {
    const uint32_t slot = slot_of(local, remote);
    if (slot == FlowTable::kNone) return nullptr;
    last_ = &connections_.at(slot);
    return last_;
  }
  /// The connection that find() returned last: nearly every segment belongs to the same connection
  /// as the one before. nullptr if there is none or it was erased.
  [[nodiscard]] Connection* last_found() const { return last_; }
  /// nullptr for a stale or invalid handle.
  [[nodiscard]] Connection* get(base::Handle handle) { return connections_.get(handle); }

  /// Calls f(connection) for each connection; f may erase the connection that it is given.
  template <typename F>
  void for_each(F&& f) {
    connections_.for_each([&f](base::Handle, Connection& connection) { f(connection); });
  }

  /// Checks that each connection is found by its endpoints and by its handle.
  void validate() {
    connections_.for_each([&](base::Handle handle, Connection& connection) {
      RNIC_CHECK(connection.handle() == handle);
      RNIC_CHECK(slot_of(connection.local(), connection.remote()) == handle.index);
    });
    connections_.validate();
    flows_.validate(live(), [this](uint32_t slot) { return flow_of(slot); });
    RNIC_CHECK(last_ == nullptr || connections_.get(last_->handle()) == last_);
  }

 private:
  [[nodiscard]] FlowTable::Flow flow_of(uint32_t slot) const {
    const Connection& connection = connections_.at(slot);
    return {connection.local(), connection.remote()};
  }
  [[nodiscard]] uint32_t slot_of(const Endpoint& local, const Endpoint& remote) const {
    return flows_.find(local, remote, [this](uint32_t slot) { return flow_of(slot); });
  }

  base::Slab<Connection> connections_;
  FlowTable flows_;  // Invariant: holds the connections of connections_ under the same numbers.
  Connection* last_ = nullptr;  // Invariant: a live connection of connections_, or nullptr.
};

}  // namespace rnic::tcp

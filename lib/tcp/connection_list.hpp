/// \file
/// Intrusive lists of connections, and the round: the connections that may have something to send.
#pragma once

#include <cstdint>

#include "base/check.hpp"

namespace rnic::tcp {

class Connection;

/// A connection's place in one list.
struct ConnectionLink {
  explicit ConnectionLink(Connection* connection) : owner(connection) {}
  ConnectionLink(const ConnectionLink&) = delete;
  ConnectionLink& operator=(const ConnectionLink&) = delete;

  [[nodiscard]] bool linked() const { return next != nullptr; }

  Connection* const owner;
  ConnectionLink* next = nullptr;  // Invariant: next and prev are both set, or both null.
  ConnectionLink* prev = nullptr;
};

/// A first-in, first-out list, linked as a ring through `ends_`. A connection that is in it keeps
/// its place when it is pushed again.
class ConnectionList {
 public:
  ConnectionList() { ends_.next = ends_.prev = &ends_; }

  [[nodiscard]] bool empty() const { return ends_.next == &ends_; }
  /// nullptr: the list is empty.
  [[nodiscard]] Connection* front() const { return ends_.next->owner; }

  void push_back(ConnectionLink& link) {
    if (link.linked()) return;
    link.next = &ends_;
    link.prev = ends_.prev;
    ends_.prev->next = &link;
    ends_.prev = &link;
  }

  static void erase(ConnectionLink& link) {
    if (!link.linked()) return;
    link.prev->next = link.next;
    link.next->prev = link.prev;
    link.next = link.prev = nullptr;
  }

  /// Checks the links both ways. \return the number of connections in it
  uint32_t validate() const {
    uint32_t count = 0;
    const ConnectionLink* before = &ends_;
    for (const ConnectionLink* at = ends_.next; at != &ends_; before = at, at = at->next) {
      RNIC_CHECK(at->owner != nullptr && at->prev == before);
      ++count;
    }
    RNIC_CHECK(ends_.prev == before);
    return count;
  }

 private:
  ConnectionLink ends_{nullptr};
};

/// The connections that may have something to send, in the order in which they are served.
class Round {
 public:
  /// output() has work to do at once: a connection joined, or a quantum was used up.
  [[nodiscard]] bool pending() const { return pending_; }
  [[nodiscard]] Connection* front() const { return list_.front(); }
  void join(ConnectionLink& link) {
    list_.push_back(link);
    pending_ = true;
  }
  static void leave(ConnectionLink& link) { ConnectionList::erase(link); }
  /// The connection was served and has more to send.
  void put_last(ConnectionLink& link) {
    ConnectionList::erase(link);
    list_.push_back(link);
  }
  /// output() is over. \param quantum_up its quantum ended before all connections had their turn
  void turned(bool quantum_up) { pending_ = quantum_up; }
  /// \return the number of connections in it
  uint32_t validate() const { return list_.validate(); }

 private:
  ConnectionList list_;
  bool pending_ = false;
};

}  // namespace rnic::tcp

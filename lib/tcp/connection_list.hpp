/// \file
/// Intrusive lists of connections, and the round of those that may send.
#pragma once

namespace rnic::tcp {

class Connection;

/// A connection's place in one list.
struct ConnectionLink {
  explicit ConnectionLink(Connection* connection) : owner(connection) {}
  ConnectionLink(const ConnectionLink&) = delete;
  ConnectionLink& operator=(const ConnectionLink&) = delete;

  [[nodiscard]] bool linked() const { return next != nullptr; }

  Connection* const owner;
  ConnectionLink* next = nullptr;  // Invariant: both are set, or none.
  ConnectionLink* prev = nullptr;
};

/// First in, first out, as a ring through `ends_`; who stands in it already keeps the place.
class ConnectionList {
 public:
  ConnectionList() { ends_.next = ends_.prev = &ends_; }

  [[nodiscard]] bool empty() const { return ends_.next == &ends_; }
  /// nullptr: nobody.
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

 private:
  ConnectionLink ends_{nullptr};
};

/// Those that may have something to send, in the order in which they are served.
class Round {
 public:
  /// output() has something to do at once: news came in, or a quantum was used up.
  [[nodiscard]] bool pending() const { return pending_; }
  [[nodiscard]] Connection* front() const { return list_.front(); }
  void join(ConnectionLink& link) {
    list_.push_back(link);
    pending_ = true;
  }
  static void leave(ConnectionLink& link) { ConnectionList::erase(link); }
  /// Served, and there is more.
  void put_last(ConnectionLink& link) {
    ConnectionList::erase(link);
    list_.push_back(link);
  }
  /// Everybody had a turn. \param quantum_up but for those whom the turn's quantum left out
  void turned(bool quantum_up) { pending_ = quantum_up; }

 private:
  ConnectionList list_;
  bool pending_ = false;
};

}  // namespace rnic::tcp

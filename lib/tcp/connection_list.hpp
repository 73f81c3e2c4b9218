/// \file
/// Intrusive lists of connections, and the round: the connections that may have something to send.
#pragma once

#include <algorithm>
#include <chrono>
#include <cstdint>

#include "base/check.hpp"
#include "base/time.hpp"

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
  /// The one behind front(); nullptr: there is none.
  [[nodiscard]] const Connection* second() const { return ends_.next->next->owner; }
  /// The one behind second(), which there is; nullptr: there is none. The place of the next one is
  /// fetched into the caches, for when it is asked for in its turn.
  [[nodiscard]] const Connection* third() const {
    const ConnectionLink* const link = ends_.next->next->next;
    __builtin_prefetch(link->next);
    return link->owner;
  }

  /// The only one; nullptr: there are none, or several.
  [[nodiscard]] Connection* only() const { return has_second() ? nullptr : front(); }
  /// There are several.
  [[nodiscard]] bool has_second() const { return ends_.next->next->owner != nullptr; }

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

  /// Takes all connections of `other`, behind its own.
  void append(ConnectionList& other) {
    if (other.empty()) return;
    ends_.prev->next = other.ends_.next;
    other.ends_.next->prev = ends_.prev;
    ends_.prev = other.ends_.prev;
    ends_.prev->next = &ends_;
    other.ends_.next = other.ends_.prev = &other.ends_;
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

/// The connections that may have something to send, in the order in which they are served. Some are
/// put off until the next turn, which they get even if nothing else happens.
class Round {
 public:
  /// output() has work to do at once: a connection joined or was put off, or a quantum was used up.
  [[nodiscard]] bool pending() const { return pending_ || !put_off_.empty(); }
  [[nodiscard]] Connection* front() const { return list_.front(); }
  [[nodiscard]] const Connection* second() const { return list_.second(); }
  [[nodiscard]] const Connection* third() const { return list_.third(); }
  /// The only connection that output() has to serve; nullptr: there are none, or several.
  [[nodiscard]] Connection* only() const { return put_off_.empty() ? list_.only() : nullptr; }
  /// The connection that is being served is the last one.
  [[nodiscard]] bool is_last() const { return !list_.has_second(); }
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

  /// Turns follow each other fast enough for an ACK to wait for the next one.
  [[nodiscard]] bool lets_wait(base::Now now) const { return now >= distrusted_until_; }
  /// The connection was served, and is served again by the next output() rather than by this one.
  void put_off(ConnectionLink& link, base::Now now) {
    ConnectionList::erase(link);
    put_off_.push_back(link);
    put_off_at_ = now;
  }

  /// output() begins: those that were put off join again.
  void begin(base::Now now) {
    if (put_off_.empty()) return;
    const base::Duration waited = now - put_off_at_;
    if (waited > kTurnMax) [[unlikely]]
      distrusted_until_ = std::max(distrusted_until_, now - kCredit) + kDistrust * waited;
    list_.append(put_off_);
  }
  /// output() is over. \param quantum_up its quantum ended before all connections had their turn
  void turned(bool quantum_up) { pending_ = quantum_up; }
  /// \return the number of connections in it
  uint32_t validate() const { return list_.validate() + put_off_.validate(); }

 private:
  // Nobody but the caller knows when the next turn comes. One that came late is paid for with a
  // time in which nothing is put off, so that no more than a hundredth of all time is spent waiting
  // for late ones, whatever the application does between its turns. Time in which none was late
  // counts, up to kCredit: a thread that has lost its core for a moment is no reason to distrust
  // the turns behind.
  static constexpr base::Duration kTurnMax = std::chrono::microseconds(100);
  static constexpr int kDistrust = 100;
  static constexpr base::Duration kCredit = std::chrono::seconds(2);

  ConnectionList list_;
  ConnectionList put_off_;
  base::Now put_off_at_{};        // the latest; valid while put_off_ has one
  base::Now distrusted_until_{};  // until then nothing is put off
  bool pending_ = false;
};

}  // namespace rnic::tcp

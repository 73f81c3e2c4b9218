/// \file
/// ConnectionTable: the places of a device's connections: who is admitted, who gives way, who is
/// refused.
#pragma once

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "base/log.hpp"
#include "base/pressure_log.hpp"
#include "base/slab.hpp"
#include "device/config.hpp"
#include "device/connection.hpp"
#include "device/counters.hpp"
#include "device/silence_watch.hpp"
#include "llp/admission.hpp"

namespace rnic::device {

/// It belongs to the worker. A connection that gives way to others keeps its place until the
/// transport has reported its end, and is taken away by reap().
class ConnectionTable {
 public:
  /// \param config, counters outlive it
  ConnectionTable(const DeviceConfig& config, DeviceCounters& counters, base::Now now);

  /// Octets of memory that the table takes.
  [[nodiscard]] static uint64_t octets_for(const Limits& limits);

  /// nullptr for a stale or invalid handle.
  [[nodiscard]] Connection* get(base::Handle handle) { return slab_.get(handle); }
  [[nodiscard]] uint32_t live() const { return slab_.live(); }
  [[nodiscard]] uint32_t capacity() const { return slab_.capacity(); }
  template <typename F>
  void for_each(F&& f) {
    slab_.for_each([&](base::Handle, Connection& connection) { f(connection); });
  }

  // --- Beginning ---

  /// Makes a connection where there is a place, or another one gives way; invalid: there is none.
  template <typename... Arguments>
  base::Handle make(base::Now now, Arguments&&... arguments) {
    if (!find_place(now)) return {};
    const base::Handle handle = slab_.emplace(std::forward<Arguments>(arguments)...);
    if (Connection* connection = slab_.get(handle)) connection->name(handle);
    return handle;
  }
  /// Takes a place back unless keep() is called.
  [[nodiscard]] base::Slab<Connection>::Tentative tentative(base::Handle handle) {
    return base::Slab<Connection>::Tentative(slab_, handle);
  }
  /// Called before an inbound start-up gets a place. If too many start-ups have not sent a whole
  /// Request, the oldest one of the address that holds most of them gives way.
  void admit_start(const IpAddress& newcomer, base::Now now);
  /// The connection is inbound, and has not sent a whole Request.
  void seat_start(Connection& connection) { connection.take_seat(starting_); }
  /// The request is whole: counts its connection among those of its peer, to its end. \return
  /// false: the peer has as many as it may (limits.peer_connections)
  [[nodiscard]] bool admit_for_peer(Connection& connection);
  /// Says in the log why somebody from `remote` was refused. \param what makes the end of the line
  template <typename F>
  void note_refused(const F& what, const Endpoint& remote, base::Now now) {
    note_pressure(refused_log_, what, remote, now);
  }
  /// Refuses a Request because too many wait before it: says so in the log, and aborts its
  /// connection. \param told a literal, for the connection's event
  template <typename F>
  void refuse_request(Connection& connection, const F& what, const char* told, base::Now now) {
    note_pressure(unanswered_log_, what, connection.remote(), now);
    evict(connection.handle(), told);
  }

  // --- Going on ---

  /// The connection is in full operation.
  void established(Connection& connection, base::Now now) { silence_.begin(connection, now); }
  /// The start-up has failed, and TCP still has to close, which takes up to tcp.orphan_timeout with
  /// a peer that does not answer.
  void linger(Connection& connection);
  /// Aborts a connection that is worth less than a newcomer, if there is one. Failed start-ups go
  /// first. Start-ups keep half of their places, so that silent connections cannot keep newcomers
  /// out; beyond that half they give way before established connections, so that peers which have
  /// not even sent a Request end none of those.
  bool make_room(base::Now now);
  [[nodiscard]] base::Now next_deadline() const { return silence_.next_deadline(); }
  void on_timers(base::Now now) { silence_.on_timers(now); }

  // --- The end ---

  /// Resets the connection's stream. \param why a literal, for its event. \return whether there was
  /// such a connection
  bool evict(base::Handle who, const char* why);
  /// The stream is gone: reap() takes it away.
  void ended(Connection& connection);
  [[nodiscard]] bool has_ended() const { return !ended_.empty(); }
  /// Calls `leave(connection)` for each that has ended, and takes it away.
  template <typename F>
  void reap(F&& leave) {
    for (const base::Handle handle : ended_) {
      Connection* connection = slab_.get(handle);
      if (connection == nullptr) continue;
      leave(*connection);
      slab_.erase(handle);
    }
    ended_.clear();
  }
  /// The interface called with each connection that is taken away because a place is needed before
  /// the service has called reap().
  class Leaving {
   public:
    virtual void leaves(Connection& connection) = 0;

   protected:
    ~Leaving() = default;
  };
  void set_leaving(Leaving& leaving) { leaving_events_ = &leaving; }

  /// Checks the invariants of each connection, and recounts those that count for their peers.
  void validate();

 private:
  // Connections that were evicted keep their places until the transport has reported their end.
  static constexpr uint32_t kEvictingMax = 64;

  /// Connections that have ended or are being evicted still have their places in the slab, but do
  /// not count against the limit.
  [[nodiscard]] bool has_place() const {
    return slab_.live() - (ended_.size() + evicting_) < config_.limits.max_connections;
  }
  /// The places of peers_: none without a limit, but a table has one at least.
  [[nodiscard]] static uint32_t peer_places(const Limits& limits) {
    return limits.peer_connections != 0 ? limits.max_connections + kEvictingMax : 1;
  }
  bool find_place(base::Now now);
  void displace(const IpAddress& newcomer, const char* why, base::Now now);
  bool displace_silent(base::Now now);
  template <typename F>
  void note_pressure(base::PressureLog& log, const F& what, const Endpoint& last, base::Now now) {
    const uint64_t count = log.note(now);
    if (count == 0) return;
    base::log(base::LogLevel::Warning, "rnic", [&] {
      return config_.name + ": " + std::to_string(count) + " inbound " +
             (count == 1 ? "association" : "associations, at last") + " from " + to_string(last) +
             ", " + what();
    });
  }

  const DeviceConfig& config_;
  DeviceCounters& counters_;
  base::Slab<Connection> slab_;
  std::vector<base::Handle> ended_;  // to be reaped; the vector never grows
  uint32_t evicting_ = 0;            // evicted, not ended yet
  llp::Admission starting_;          // inbound, without a whole valid Request
  llp::Admission leaving_;           // inbound, failed or rejected, not closed yet
  llp::Admission peers_;             // inbound, asking or more; used with limits.peer_connections
  SilenceWatch silence_;
  Leaving* leaving_events_ = nullptr;
  base::PressureLog displaced_log_;
  base::PressureLog silent_log_;
  base::PressureLog refused_log_;
  base::PressureLog unanswered_log_;
};

}  // namespace rnic::device

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

/// The worker's. A connection that is let go for others keeps its place until the transport has
/// told its end, and is taken away by reap().
class ConnectionTable {
 public:
  /// \param config, counters outlive it
  ConnectionTable(const DeviceConfig& config, DeviceCounters& counters, base::Now now);

  /// What the table asks the machine for. \param most limits.max_connections
  [[nodiscard]] static uint64_t octets_for(uint64_t most);

  /// nullptr for a stale or invalid handle.
  [[nodiscard]] Connection* get(base::Handle handle) { return slab_.get(handle); }
  [[nodiscard]] uint32_t live() const { return slab_.live(); }
  [[nodiscard]] uint32_t capacity() const { return slab_.capacity(); }
  template <typename F>
  void for_each(F&& f) {
    slab_.for_each([&](base::Handle, Connection& connection) { f(connection); });
  }

  // --- Beginning ---

  /// A place for one more, where there is one or somebody gives way; invalid: there is none.
  template <typename... Arguments>
  base::Handle make(base::Now now, Arguments&&... arguments) {
    if (!find_place(now)) return {};
    const base::Handle handle = slab_.emplace(std::forward<Arguments>(arguments)...);
    if (Connection* connection = slab_.get(handle)) connection->handle = handle;
    return handle;
  }
  /// Takes a place back unless keep() is called.
  [[nodiscard]] base::Slab<Connection>::Tentative tentative(base::Handle handle) {
    return base::Slab<Connection>::Tentative(slab_, handle);
  }
  /// Before an inbound start-up gets a place: where too many have not sent a whole Request, the
  /// oldest of the address that holds most gives way.
  void admit_start(const IpAddress& newcomer, base::Now now);
  /// It is inbound, and has not sent a whole Request.
  void seat_start(Connection& connection) { connection.take_seat(starting_); }
  /// Says in the log why somebody from `remote` was refused. \param what makes the end of the line
  template <typename F>
  void note_refused(const F& what, const Endpoint& remote, base::Now now) {
    note_pressure(refused_log_, what, remote, now);
  }
  /// The same of a Request that finds too many before it; it is let go.
  template <typename F>
  void refuse_request(Connection& connection, const F& what, base::Now now) {
    note_pressure(unanswered_log_, what, connection.remote, now);
    let_go(connection.handle, kUnanswered);
  }

  // --- Going on ---

  /// Full operation.
  void established(Connection& connection, base::Now now) { silence_.begin(connection, now); }
  /// The start-up has failed, and TCP still has to close: with a peer that does not play along for
  /// as long as tcp.orphan_timeout.
  void linger(Connection& connection);
  /// Somebody gives way, if there is one who is worth less than a newcomer. What has failed goes
  /// before what may come to something. Half of the start-ups' places are theirs, so that silent
  /// connections cannot keep newcomers out; beyond that start-ups give way, so that who has not
  /// even sent a Request ends no connection.
  bool make_room(base::Now now);
  [[nodiscard]] base::Now next_deadline() const { return silence_.next_deadline(); }
  void on_timers(base::Now now) { silence_.on_timers(now); }

  // --- The end ---

  /// The stream is gone: reap() takes it away.
  void ended(Connection& connection);
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
  /// What reap() calls where a place is needed before its turn.
  class Leaving {
   public:
    virtual void leaves(Connection& connection) = 0;

   protected:
    ~Leaving() = default;
  };
  void set_leaving(Leaving& leaving) { leaving_events_ = &leaving; }

 private:
  // Connections that were let go keep their places until the transport has told their end.
  static constexpr uint32_t kYieldingMax = 64;
  static const char* const kUnanswered;

  /// Those that are on their way out have their places in the slab still, and count no more.
  [[nodiscard]] bool has_place() const {
    return slab_.live() - (ended_.size() + yielding_) < config_.limits.max_connections;
  }
  bool find_place(base::Now now);
  void displace(const IpAddress& newcomer, const char* why, base::Now now);
  bool displace_silent(base::Now now);
  /// Its stream is reset. \param why for its event. \return there was one
  bool let_go(base::Handle who, const char* why);
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
  std::vector<base::Handle> ended_;  // to be reaped; its memory is there from the start
  uint32_t yielding_ = 0;            // let go, not ended yet
  llp::Admission starting_;          // inbound, without a whole valid Request
  llp::Admission leaving_;           // inbound, failed or rejected, not closed yet
  SilenceWatch silence_;
  Leaving* leaving_events_ = nullptr;
  base::PressureLog displaced_log_;
  base::PressureLog silent_log_;
  base::PressureLog refused_log_;
  base::PressureLog unanswered_log_;
};

}  // namespace rnic::device

/// \file
/// SilenceWatch: established inbound connections that have been silent for long, which give way to
/// newcomers where limits.silence allows it.
#pragma once

#include "base/timer_wheel.hpp"
#include "device/config.hpp"
#include "device/connection.hpp"
#include "llp/admission.hpp"

namespace rnic::device {

/// Belongs to the worker. The watch looks at each connection in use a few times per limits.silence,
/// so that no segment costs anything.
class SilenceWatch {
 public:
  /// \param limits outlive it
  SilenceWatch(const Limits& limits, const std::array<uint64_t, 2>& secret, base::Now now);

  /// Watches a connection that is in full operation now, if it is inbound: one that this side has
  /// asked for never gives way.
  void begin(Connection& connection, base::Now now);
  void end(Connection& connection) { connection.cancel_silence(timers_); }
  [[nodiscard]] base::Now next_deadline() const { return timers_.next_deadline(); }
  void on_timers(base::Now now);

  /// The silent connection that gives way first; invalid: there is none.
  template <typename Get>
  [[nodiscard]] base::Handle gives_way(const Get& connection_of, base::Now now) {
    while (silent_.size() != 0) {
      const base::Handle who = silent_.gives_way();
      Connection& connection = connection_of(who);
      if (!connection.has_moved()) return who;
      connection.set_silent_since(now);  // since it was found silent
      connection.leave_seat();
    }
    return {};
  }
  [[nodiscard]] const llp::Admission& silent() const { return silent_; }

 private:
  void look(Connection& connection, base::Now now);

  const Limits& limits_;
  llp::Admission silent_;  // inbound, established, silent for limits.silence
  base::TimerWheel timers_;
};

}  // namespace rnic::device

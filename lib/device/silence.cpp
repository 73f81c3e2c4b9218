// Device: established inbound connections that have been silent for long, which give way where
// limits.silence allows it.

#include <algorithm>
#include <utility>

#include "device/device.hpp"

namespace rnic::device {

namespace {

constexpr const char* kSilent =
    "let go for another one: it had been silent for longer than limits.silence";
constexpr int kLooks = 4;  // in the time of limits.silence
constexpr base::Duration kLeastPause = std::chrono::milliseconds(1);

base::Duration pause_of(const Limits& limits) {
  return std::max(limits.silence / kLooks, kLeastPause);
}

}  // namespace

void Device::watch_silence(Connection& connection) {
  if (!yields_silent(config_.limits) || !connection.is_responder()) return;
  connection.silent_since = last_now_;
  static_cast<void>(has_moved(connection));
  silence_timers_.arm(connection.silence_timer, last_now_ + pause_of(config_.limits));
}

/// Since the last look: octets came, work was done, or there is some to do.
bool Device::has_moved(Connection& connection) {
  QueuePair* qp = connection.queue_pair();
  const Connection::Progress progress{connection.session().arrived(),
                                      qp == nullptr ? 0 : qp->endpoint().sends_completed()};
  const bool moved = progress != std::exchange(connection.progress, progress);
  return moved || (qp != nullptr && qp->endpoint().has_work());
}

/// A connection in use costs a look a few times in limits.silence, and nothing with each segment.
void Device::look_at_silence(Connection& connection, base::Now now) {
  if (connection.yields != nullptr) return;
  if (has_moved(connection)) {
    connection.silent_since = now;
    leave_seat(connection);
  } else if (connection.table == nullptr &&
             now - connection.silent_since >= config_.limits.silence) {
    take_seat(connection, silent_);
  }
  silence_timers_.arm(connection.silence_timer, now + pause_of(config_.limits));
}

/// \return somebody was let go
bool Device::displace_silent() {
  while (silent_.size() != 0) {
    const base::Handle who = silent_.gives_way();
    Connection& connection = *connections_.get(who);
    if (has_moved(connection)) {  // since it was found silent
      connection.silent_since = last_now_;
      leave_seat(connection);
      continue;
    }
    ++counters_.silent_displaced;
    const auto why = [&] {
      return "established and silent, gave way to newer ones: " + std::to_string(silent_.size()) +
             " had been silent for longer than limits.silence, " +
             std::to_string(silent_.held_by(connection.remote.address)) + " of them from there";
    };
    note_pressure(silent_log_, why, connection.remote);
    return let_go(who, kSilent);
  }
  return false;
}

}  // namespace rnic::device

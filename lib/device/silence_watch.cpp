#include "device/silence_watch.hpp"

#include <algorithm>
#include <utility>

#include "device/queue_pair.hpp"

namespace rnic::device {

namespace {

constexpr int kLooks = 4;  // in the time of limits.silence
constexpr base::Duration kLeastPause = std::chrono::milliseconds(1);

base::Duration pause_of(const Limits& limits) {
  return std::max(limits.silence / kLooks, kLeastPause);
}

}  // namespace

SilenceWatch::SilenceWatch(const Limits& limits, const std::array<uint64_t, 2>& secret,
                           base::Now now)
    : limits_(limits),
      silent_(evicts_silent(limits) ? limits.max_connections : 1, secret),
      timers_(now) {}

void SilenceWatch::begin(Connection& connection, base::Now now) {
  if (!evicts_silent(limits_) || !connection.is_responder()) return;
  connection.silent_since = now;
  static_cast<void>(has_moved(connection));
  timers_.arm(connection.silence_timer, now + pause_of(limits_));
}

void SilenceWatch::on_timers(base::Now now) {
  if (timers_.next_deadline() > now) return;
  timers_.expire(now,
                 [&](base::TimerNode& node) { look(*static_cast<Connection*>(node.owner), now); });
}

bool SilenceWatch::has_moved(Connection& connection) {
  QueuePair* qp = connection.queue_pair();
  const Connection::Progress progress{connection.session().arrived(),
                                      qp == nullptr ? 0 : qp->endpoint().sends_completed()};
  const bool moved = progress != std::exchange(connection.progress, progress);
  return moved || (qp != nullptr && qp->endpoint().has_work());
}

void SilenceWatch::look(Connection& connection, base::Now now) {
  if (connection.evicted_for != nullptr) return;
  if (has_moved(connection)) {
    connection.silent_since = now;
    connection.leave_seat();
  } else if (!connection.has_seat() && now - connection.silent_since >= limits_.silence) {
    connection.take_seat(silent_);
  }
  timers_.arm(connection.silence_timer, now + pause_of(limits_));
}

}  // namespace rnic::device

#include "device/silence_watch.hpp"

#include <algorithm>

namespace rnic::device {

namespace {

constexpr int kLooks = 4;  // per limits.silence
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
  connection.set_silent_since(now);
  static_cast<void>(connection.has_moved());
  connection.arm_silence(timers_, now + pause_of(limits_));
}

void SilenceWatch::on_timers(base::Now now) {
  if (!timers_.due(now)) return;
  timers_.expire(now,
                 [&](base::TimerNode& node) { look(*static_cast<Connection*>(node.owner), now); });
}

void SilenceWatch::look(Connection& connection, base::Now now) {
  if (connection.evicted_for() != nullptr) return;
  if (connection.has_moved()) {
    connection.set_silent_since(now);
    connection.leave_seat();
  } else if (!connection.has_seat() && now - connection.silent_since() >= limits_.silence) {
    connection.take_seat(silent_);
  }
  connection.arm_silence(timers_, now + pause_of(limits_));
}

}  // namespace rnic::device

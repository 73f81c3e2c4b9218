/// \file
/// NotifyModerator: how many completions one wake-up stands for.
#pragma once

#include <chrono>
#include <cstdint>
#include <memory>
#include <string>
#include <utility>

#include "base/fail.hpp"
#include "base/timer_wheel.hpp"
#include "device/queue_listener.hpp"
#include "device/turn_clock.hpp"
#include "rnic/completion_queue.hpp"

namespace rnic::device {

/// The device's clock and the deadlines of its completion queues' moderators. Belongs to the
/// worker.
class NotifyTimers {
 public:
  explicit NotifyTimers(base::Now now) : wheel_(now) { clock_.begin(now); }

  [[nodiscard]] const TurnClock& clock() const { return clock_; }
  void begin(base::Now now) { clock_.begin(now); }
  /// \param node its owner is a NotifyModerator
  void start(base::TimerNode& node, base::Duration period) {
    wheel_.arm(node, clock_.now() + period);
  }
  void stop(base::TimerNode& node) { wheel_.cancel(node); }
  [[nodiscard]] base::Now next_deadline() const { return wheel_.next_deadline(); }
  void on_timers(base::Now now);

 private:
  TurnClock clock_;
  base::TimerWheel wheel_;
};

/// Stands between a completion queue and its listener, and holds back notifications until they are
/// worth a wake-up.
///
/// No completion is missed: the listener learns of one that is added while it waits when the count
/// is reached or the time is over, and a thread that begins to wait later looks at the queue once
/// more after that (base::Bell).
class NotifyModerator {
 public:
  /// \param timers outlives it
  NotifyModerator(const NotifyModeration& how, NotifyTimers& timers) : how_(how), timers_(timers) {
    timer_.owner = this;
  }
  ~NotifyModerator() { timers_.stop(timer_); }
  NotifyModerator(const NotifyModerator&) = delete;
  NotifyModerator& operator=(const NotifyModerator&) = delete;

  /// InvalidArgument names the limit that `how` exceeds. \param call the name for the message
  static Status check(const char* call, const NotifyModeration& how);
  /// Changes the moderation from now on. The listener is told of what was kept back.
  void set(const NotifyModeration& how) {
    tell();
    how_ = how;
  }
  void set_listener(std::unique_ptr<QueueListener> listener) { listener_ = std::move(listener); }

  /// Called after the push of a completion.
  void added(bool urgent) {
    if (listener_ != nullptr) [[unlikely]] added_for_listener(urgent);
  }
  /// Tells of what was kept back, if there is anything.
  [[gnu::noinline]] void tell() {
    timers_.stop(timer_);
    if (kept_ == 0) return;
    kept_ = 0;
    listener_->added(std::exchange(kept_urgent_, false));
  }

 private:
  [[gnu::noinline]] void added_for_listener(bool urgent) {
    if (how_.count <= 1) return listener_->added(urgent);
    if (!listener_->awaits(urgent)) return;
    if (kept_ == 0) timers_.start(timer_, how_.period);
    kept_urgent_ |= urgent;
    if (++kept_ >= how_.count) tell();
  }

  NotifyModeration how_;
  NotifyTimers& timers_;
  std::unique_ptr<QueueListener> listener_;  // nullptr: nobody has asked for a descriptor
  base::TimerNode timer_;                    // armed while something is kept back
  uint32_t kept_ = 0;
  bool kept_urgent_ = false;
};

inline void NotifyTimers::on_timers(base::Now now) {
  if (!wheel_.due(now)) return;
  wheel_.expire(now, [](base::TimerNode& node) {
    static_cast<NotifyModerator*>(node.owner)->tell();
  });
}

inline Status NotifyModerator::check(const char* call, const NotifyModeration& how) {
  using std::chrono::nanoseconds;
  const bool timed = how.period > nanoseconds{0} && how.period <= kMaxNotifyPeriod;
  if (how.count == 1 && (timed || how.period == nanoseconds{0})) return {};
  if (how.count > 1 && how.count <= kMaxNotifyCount && timed) return {};
  return base::fail(
      ErrorCode::InvalidArgument,
      std::string(call) + ": a wake-up for " + std::to_string(how.count) +
          " completions or after " + std::to_string(how.period.count()) +
          " ns: 1 to 65535 completions (kMaxNotifyCount), and above 1 with a period of at most a "
          "second (kMaxNotifyPeriod)");
}

}  // namespace rnic::device

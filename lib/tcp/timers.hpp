/// \file
/// The timers of one connection: seven deadlines behind one node of the timer wheel.
#pragma once

#include <array>
#include <cstdint>

#include "base/check.hpp"
#include "base/time.hpp"
#include "base/timer_wheel.hpp"
#include "tcp/prediction.hpp"

namespace rnic::tcp {

enum class Timer : uint8_t {
  Rto,         ///< retransmission (RFC 6298 s.5); of a SYN, too
  Probe,       ///< tail loss probe (RFC 8985 s.7)
  Reorder,     ///< RACK's reordering window (RFC 8985 s.6.3)
  Persist,     ///< zero window (RFC 9293 s.3.8.6.1), or the silly-window override (s.3.8.6.2.1)
  DelayedAck,  ///< RFC 9293 s.3.8.6.3, or an ACK is repeated (AckPolicy)
  Pacing,      ///< the next segment may leave
  Life,        ///< connect, keep-alive, close
};

/// The node is armed at or before the earliest deadline. A timer that is cleared or put off leaves
/// the node armed, which then fires without effect.
class Timers {
 public:
  /// \param wheel outlives this. \param owner the pointer that the callback of the wheel finds in
  /// the node. \param prediction is ended when Timer::Persist or Timer::Reorder is set
  Timers(base::TimerWheel& wheel, void* owner, Prediction& prediction)
      : wheel_(wheel), prediction_(prediction) {
    at_.fill(base::kNever);
    node_.owner = owner;
  }
  ~Timers() { wheel_.cancel(node_); }
  Timers(const Timers&) = delete;
  Timers& operator=(const Timers&) = delete;

  [[nodiscard]] base::Now at(Timer timer) const { return at_[index(timer)]; }
  [[nodiscard]] bool runs(Timer timer) const { return at(timer) != base::kNever; }
  [[nodiscard]] bool due(Timer timer, base::Now now) const { return at(timer) <= now; }
  [[nodiscard]] base::Now earliest() const;

  /// Starts the timer or moves its deadline.
  void set(Timer timer, base::Now at) {
    RNIC_DCHECK(at != base::kNever);
    if (timer == Timer::Persist || timer == Timer::Reorder) prediction_.end();
    at_[index(timer)] = at;
    wake_by(at);
  }
  void clear(Timer timer) { at_[index(timer)] = base::kNever; }
  /// The node has fired, and due timers are about to be handled.
  void fired() { prediction_.end(); }
  /// The due timers were handled: arms the node for the others.
  void wait();
  /// Stops all timers.
  void stop();

  void validate() const;

 private:
  static constexpr size_t kTimers = 7;

  [[nodiscard]] static constexpr size_t index(Timer timer) { return static_cast<size_t>(timer); }
  void wake_by(base::Now at) {
    if (!node_.armed() || node_.deadline > at) wheel_.arm(node_, at);
  }

  base::TimerWheel& wheel_;
  Prediction& prediction_;
  base::TimerNode node_;                 // Invariant: armed at or before the earliest of at_.
  std::array<base::Now, kTimers> at_{};  // kNever: the timer does not run
};

}  // namespace rnic::tcp

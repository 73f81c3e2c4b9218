/// \file
/// Waiting for the peer's window: zero-window probes (RFC 9293 s.3.8.6.1), and the override timer
/// of silly window syndrome (SWS) avoidance (s.3.8.6.2.1).
#pragma once

#include <cstdint>

#include "base/check.hpp"
#include "base/time.hpp"
#include "tcp/tcb.hpp"
#include "tcp/timers.hpp"

namespace rnic::tcp {

/// Probes and override share Timer::Persist; SND.WND tells which of them is due when it fires.
class Persist {
 public:
  /// Both parameters outlive this.
  Persist(const Tcb& tcb, Timers& timers) : tcb_(tcb), timers_(timers) {}

  /// The override timer has fired: less than a full record may be sent.
  [[nodiscard]] bool overrides() const { return override_; }
  /// A probe waits for its turn.
  [[nodiscard]] bool probe_due() const { return probe_due_; }
  /// Probes since the peer last answered.
  [[nodiscard]] uint32_t unanswered() const { return unanswered_; }
  /// Probes since the window closed.
  [[nodiscard]] uint32_t backoff() const { return backoff_; }

  /// Starts the timer, because no waiting data fits into the window and no data is in flight whose
  /// ACK could update the window. \return the timer was not running
  bool wait(base::Now until) {
    if (timers_.runs(Timer::Persist)) return false;
    timers_.set(Timer::Persist, until);
    return true;
  }
  /// The timer has fired while the window was open, but small.
  void override_silly_window() {
    override_ = true;
    timers_.clear(Timer::Persist);
  }
  /// The timer has fired while the window was zero.
  void probe(base::Now next) {
    probe_due_ = true;
    if (backoff_ != UINT16_MAX) ++backoff_;
    timers_.set(Timer::Persist, next);
  }
  void probe_sent() {
    probe_due_ = false;
    if (unanswered_ != UINT16_MAX) ++unanswered_;
  }
  /// The probe is not needed: data is in flight, whose ACK will carry the window.
  void drop_probe() { probe_due_ = false; }
  /// New data was sent.
  void sent() {
    override_ = false;
    timers_.clear(Timer::Persist);
  }
  /// An ACK with a window arrived while the timer ran.
  void answered(uint32_t emss) {
    unanswered_ = 0;
    const bool reopened = tcb_.snd_wnd != 0 && backoff_ != 0;
    // If the window has opened, the timer is stopped, so that the override timer starts without the
    // back-off of the probes.
    if (reopened || tcb_.usable_window() >= emss) timers_.clear(Timer::Persist);
    if (tcb_.snd_wnd != 0) backoff_ = 0;
  }
  /// Checks the count of unanswered probes. It may exceed the back-off by one, since a probe that
  /// waited for the port while the window opened is sent after the back-off has ended.
  void validate() const { RNIC_CHECK(unanswered_ <= backoff_ + 1); }

 private:
  const Tcb& tcb_;
  Timers& timers_;
  bool override_ = false;
  bool probe_due_ = false;
  uint16_t backoff_ = 0;
  uint16_t unanswered_ = 0;
};

}  // namespace rnic::tcp

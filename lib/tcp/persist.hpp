/// \file
/// What waits for the peer's window: the probes of a window of zero (RFC 9293 s.3.8.6.1), and the
/// override of silly window avoidance (s.3.8.6.2.1).
#pragma once

#include <cstdint>

#include "base/check.hpp"
#include "base/time.hpp"
#include "tcp/tcb.hpp"
#include "tcp/timers.hpp"

namespace rnic::tcp {

/// Both have Timer::Persist: the window tells which it is when the timer fires.
class Persist {
 public:
  /// Both outlive this.
  Persist(const Tcb& tcb, Timers& timers) : tcb_(tcb), timers_(timers) {}

  /// Less than a full record may go out.
  [[nodiscard]] bool overrides() const { return override_; }
  /// A probe waits for its turn.
  [[nodiscard]] bool probe_due() const { return probe_due_; }
  /// Probes since the peer last said anything.
  [[nodiscard]] uint32_t unanswered() const { return unanswered_; }
  /// Probes since the window was shut.
  [[nodiscard]] uint32_t backoff() const { return backoff_; }

  /// Nothing that waits fits into the window, and nothing is in flight whose ACK could bring news.
  /// \return it was not so before
  bool wait(base::Now until) {
    if (timers_.runs(Timer::Persist)) return false;
    timers_.set(Timer::Persist, until);
    return true;
  }
  /// The timer has fired on a window that is open, but small.
  void override_silly_window() {
    override_ = true;
    timers_.clear(Timer::Persist);
  }
  /// The timer has fired on a shut one.
  void probe(base::Now next) {
    probe_due_ = true;
    if (backoff_ != UINT16_MAX) ++backoff_;
    timers_.set(Timer::Persist, next);
  }
  void probe_sent() {
    probe_due_ = false;
    if (unanswered_ != UINT16_MAX) ++unanswered_;
  }
  /// Octets are in flight: they ask as well.
  void drop_probe() { probe_due_ = false; }
  /// New octets went out.
  void sent() {
    override_ = false;
    timers_.clear(Timer::Persist);
  }
  /// The peer has told its window while the timer ran.
  void answered(uint32_t emss) {
    unanswered_ = 0;
    const bool reopened = tcb_.snd_wnd != 0 && backoff_ != 0;
    // The silly window override starts anew.
    if (reopened || tcb_.usable_window() >= emss) timers_.clear(Timer::Persist);
    if (tcb_.snd_wnd != 0) backoff_ = 0;
  }
  /// One probe may have waited for the port while the window opened.
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

/// \file
/// When the next segment may leave: pacing, and the hold after a mark on a window of one segment.
#pragma once

#include <cstdint>

#include "base/check.hpp"
#include "base/time.hpp"
#include "tcp/pacing_mode.hpp"
#include "tcp/timers.hpp"

namespace rnic::tcp {

class Pacing {
 public:
  /// Turns pacing on or off. A hold() that is in force stays.
  void enable(bool on);
  [[nodiscard]] bool on() const { return mode_ == PacingMode::Paced; }
  /// ask() has to be called before sending: the connection is paced or held.
  [[nodiscard]] bool gated() const { return mode_ != PacingMode::Free; }
  [[nodiscard]] PacingMode mode() const { return mode_; }

  enum class Gate : uint8_t {
    Open,
    Closed,  ///< until Timer::Pacing
    Closes,  ///< as Closed, and this is the first segment that waits
  };
  /// Its timer is Timer::Pacing.
  [[nodiscard]] Gate ask(Timers& timers, base::Now now);
  /// The timer has fired.
  static void fired(Timers& timers) { timers.clear(Timer::Pacing); }
  /// Nothing leaves before `until`.
  void hold(base::Now until);
  /// Octets were sent. \param rate octets that may be sent in a time of `per`
  void sent(uint64_t octets, uint64_t rate, base::Duration per, base::Now now);
  /// Checks that its timer runs for a closed gate alone.
  void validate(const Timers& timers) const {
    RNIC_CHECK(!timers.runs(Timer::Pacing) || (gated() && timers.at(Timer::Pacing) > base::Now{}));
    RNIC_CHECK(!waiting_ || release_at_ > base::Now{});
  }

 private:
  // The lateness of the timer is made up for, up to this time.
  static constexpr base::Duration kSlack = std::chrono::milliseconds(1);

  /// The one place that sets the mode.
  void set_mode(PacingMode next);

  PacingMode mode_ = PacingMode::Free;
  bool waiting_ = false;  // something stood before the gate
  base::Now release_at_{};
};

}  // namespace rnic::tcp

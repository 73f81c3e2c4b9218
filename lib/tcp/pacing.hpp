/// \file
/// Decides when the next segment may leave: pacing, and the hold after a mark that met a window of
/// one segment.
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
    Closed,  ///< the segment waits until Timer::Pacing fires
    Closes,  ///< like Closed, and this is the first call that finds the gate closed
  };
  /// Asks for the next segment to leave. Uses Timer::Pacing.
  [[nodiscard]] Gate ask(Timers& timers, base::Now now);
  /// The timer has fired.
  static void fired(Timers& timers) { timers.clear(Timer::Pacing); }
  /// Nothing leaves before `until`.
  void hold(base::Now until);
  /// Octets were sent. \param rate octets that may be sent in the time `per`
  void sent(uint64_t octets, uint64_t rate, base::Duration per, base::Now now);
  /// Checks that Timer::Pacing runs only while the connection is paced or held, and that a wait has
  /// an end.
  void validate(const Timers& timers) const {
    RNIC_CHECK(!timers.runs(Timer::Pacing) || (gated() && timers.at(Timer::Pacing) > base::Now{}));
    RNIC_CHECK(!waiting_ || release_at_ > base::Now{});
  }

 private:
  // A late timer is made up for by at most this time.
  static constexpr base::Duration kSlack = std::chrono::milliseconds(1);

  /// The one place that sets the mode.
  void set_mode(PacingMode next);

  PacingMode mode_ = PacingMode::Free;
  bool waiting_ = false;  // a segment has found the gate closed
  base::Now release_at_{};
};

}  // namespace rnic::tcp

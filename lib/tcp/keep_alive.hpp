/// \file
/// Keep-alive (RFC 9293 s.3.8.4): a peer that has sent nothing for long is probed.
#pragma once

#include <cstdint>

#include "base/check.hpp"
#include "base/time.hpp"
#include "tcp/connection_options.hpp"
#include "tcp/timers.hpp"

namespace rnic::tcp {

/// KeepAlive uses Timer::Life while the connection is established.
class KeepAlive {
 public:
  /// An acceptable segment of the peer came.
  void heard(base::Now now) { heard_at_ = now; }
  [[nodiscard]] base::Now heard_at() const { return heard_at_; }
  /// Starts or stops the timer as the options say.
  void arm(const ConnectionOptions& options, Timers& timers, base::Now now);

  enum class Verdict : uint8_t { Wait, Probe, Dead };
  /// The timer has fired. \param watched another timer already waits for an answer of the peer
  [[nodiscard]] Verdict due(const ConnectionOptions& options, Timers& timers, bool watched,
                            base::Now now);
  /// A probe waits for its turn.
  [[nodiscard]] bool probe_due() const { return probe_due_; }
  /// The probe was sent, or is not needed any more.
  void probe_done() { probe_due_ = false; }
  /// Checks that the timer of an established connection runs while the options ask for probes, and
  /// that no more of them are counted than the options allow.
  void validate(const ConnectionOptions& options, const Timers& timers) const {
    RNIC_CHECK(timers.runs(Timer::Life) == options.keep_alive);
    RNIC_CHECK(probes_ <= (options.keep_alive ? options.keep_alive_count : 0));
  }

 private:
  base::Now heard_at_{};
  uint32_t probes_ = 0;  // unanswered
  bool probe_due_ = false;
};

}  // namespace rnic::tcp

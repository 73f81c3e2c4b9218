/// \file
/// The tail loss probe (RFC 8985 s.7): what nothing sent later can tell the loss of is sent again,
/// or followed by something new, before the retransmission time-out.
#pragma once

#include <cstdint>

#include "base/time.hpp"
#include "tcp/ack_yield.hpp"
#include "tcp/config.hpp"
#include "tcp/prediction.hpp"
#include "tcp/recovery.hpp"
#include "tcp/rto.hpp"
#include "tcp/scoreboard.hpp"
#include "tcp/tcb.hpp"
#include "tcp/timers.hpp"

namespace rnic::tcp {

class TailProbe {
 public:
  /// All of them outlive this. Its timers are Timer::Probe and, behind a probe, Timer::Rto.
  TailProbe(const RtoEstimator& rto, const Scoreboard& board, Timers& timers,
            Prediction& prediction, const Config& config)
      : rto_(rto), board_(board), timers_(timers), prediction_(prediction), config_(config) {}

  /// Starts the timer (s.7.2). \param emss a full segment. \param time_out when it is or would be
  void arm(RecoveryPhase phase, uint32_t emss, base::Now now, base::Now time_out);
  /// The same where quiet() holds, nothing is SACKed or lost, and round trips are measured.
  void arm_quiet(uint32_t emss, base::Now now, base::Now time_out) {
    if (!wanted()) {
      timers_.clear(Timer::Probe);
      return;
    }
    base::Now probe = now + rto_.probe_timeout();
    if (board_.tcb().flight() <= emss) probe += config_.tlp_max_ack_delay;
    timers_.set(Timer::Probe, base::earlier(probe, time_out));
  }
  /// The timer has fired (s.7.3). \return a probe is due
  bool fired(base::Now now);
  /// It has gone out. \param again octets that were sent before
  void sent(RecoveryPhase phase, bool again, uint32_t emss, base::Now now);
  /// There is nothing to probe for.
  void drop() { due_ = false; }

  /// \param yield of an ACK up to SND.UNA (s.7.4.2)
  /// \return a probe has repaired a loss that nothing else saw: congestion control is to hear of it
  [[nodiscard]] bool acked(const AckYield& yield, RecoveryPhase phase);
  /// A recovery begins.
  void recovers();
  /// The retransmission time-out came first.
  void timed_out();

  /// A probe waits for its turn.
  [[nodiscard]] bool due() const { return due_; }
  /// It is not known yet whether it was for nothing.
  [[nodiscard]] bool outstanding() const { return outstanding_; }
  [[nodiscard]] bool is_retransmission() const { return is_retransmission_; }
  /// No ACK has to be looked at for it.
  [[nodiscard]] bool quiet() const { return !outstanding_ && !unmeasured_; }
  void validate() const;

 private:
  // Probes without an answer before the RTO has its turn.
  static constexpr uint32_t kMaxProbes = 3;

  [[nodiscard]] bool wanted() const { return board_.tcb().sack_ok && config_.tail_loss_probe; }

  const RtoEstimator& rto_;
  const Scoreboard& board_;
  Timers& timers_;
  Prediction& prediction_;  // ends where quiet() does
  const Config& config_;
  uint64_t end_ = 0;  // TLP.end_seq
  bool outstanding_ = false;
  bool is_retransmission_ = false;  // TLP.is_retrans
  bool due_ = false;
  bool unmeasured_ = false;  // no round trip was measured since the last probe
  uint32_t count_ = 0;       // probes since the peer last answered; 0 unless unmeasured_
};

}  // namespace rnic::tcp

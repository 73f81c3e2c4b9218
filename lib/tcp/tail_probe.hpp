/// \file
/// The tail loss probe (RFC 8985 s.7): when ACKs stop, the last segment is retransmitted, or new
/// data is sent, before the retransmission time-out, since no later segment can reveal the loss of
/// the last ones.
#pragma once

#include <cstdint>

#include "base/time.hpp"
#include "tcp/ack_result.hpp"
#include "tcp/config.hpp"
#include "tcp/prediction.hpp"
#include "tcp/probe_state.hpp"
#include "tcp/recovery.hpp"
#include "tcp/rto_estimator.hpp"
#include "tcp/scoreboard.hpp"
#include "tcp/tcb.hpp"
#include "tcp/timers.hpp"

namespace rnic::tcp {

class TailProbe {
 public:
  /// All parameters outlive this. TailProbe uses Timer::Probe.
  TailProbe(const RtoEstimator& rto, const Scoreboard& board, Timers& timers, const Config& config)
      : rto_(rto), board_(board), timers_(timers), config_(config) {}

  /// Starts the timer with PTO: TLP_calc_PTO() (RFC 8985 s.7.2). \param emss octets of a full
  /// segment. \param time_out when the RTO expires or would expire
  void arm(RecoveryPhase phase, uint32_t emss, base::Now now, base::Now time_out);
  /// Does what arm() does where idle() holds, no data is SACKed or lost, and a round trip was
  /// measured.
  void arm_idle(uint32_t emss, base::Now now, base::Now time_out) {
    if (!wanted()) {
      stop();
      return;
    }
    base::Now probe = now + rto_.probe_timeout();
    if (board_.tcb().flight() <= emss) probe += config_.tlp_max_ack_delay;
    timers_.set(Timer::Probe, base::earlier(probe, time_out));
  }
  /// Stops the timer: nothing is in flight.
  void stop() { timers_.clear(Timer::Probe); }
  /// The timer has fired: a probe is due.
  void fired();
  /// Sender has sent the probe: does the rest of TLP_send_probe() (RFC 8985 s.7.3). \param again it
  /// repeats data sent before. \param time_out when the RTO, which was restarted, expires. \param
  /// prediction is ended, since idle() becomes false
  void sent(RecoveryPhase phase, bool again, uint32_t emss, base::Now now, base::Now time_out,
            Prediction& prediction);
  /// No probe is needed any more.
  void drop();

  /// Judges an ACK after SND.UNA has advanced: TLP_process_ack() (RFC 8985 s.7.4.2). \return the
  /// probe has repaired a loss that was not detected otherwise: congestion control has to respond
  [[nodiscard]] bool acked(const AckResult& result, RecoveryPhase phase);
  /// A recovery begins: TLP_init() (RFC 8985 s.7.1), as in timed_out().
  void recovers();
  /// The retransmission timer has expired: the probe is given up.
  void timed_out();

  /// A probe waits for its turn.
  [[nodiscard]] bool due() const { return turn_ >= ProbeTurn::Due; }
  /// It is not known yet whether the probe was necessary.
  [[nodiscard]] bool outstanding() const { return state_ != ProbeState::None; }
  [[nodiscard]] ProbeState state() const { return state_; }
  [[nodiscard]] ProbeTurn turn() const { return turn_; }
  /// No probe is outstanding or unmeasured: ACKs have no effect on the probe.
  [[nodiscard]] bool idle() const { return !outstanding() && !unmeasured(); }
  void validate() const;

 private:
  // The number of unanswered probes after which the sender waits for the RTO.
  static constexpr uint32_t kMaxProbes = 3;

  /// The one place that sets the state.
  void set_state(ProbeState next);
  /// The one place that sets the turn.
  void set_turn(ProbeTurn next);
  /// No round trip was measured since the last probe.
  [[nodiscard]] bool unmeasured() const {
    return turn_ == ProbeTurn::Unmeasured || turn_ == ProbeTurn::DueAgain;
  }
  /// Forgets the outstanding probe, if there is one.
  void forget() {
    if (outstanding()) set_state(ProbeState::None);
  }
  [[nodiscard]] bool wanted() const { return board_.tcb().sack_ok && config_.tail_loss_probe; }

  const RtoEstimator& rto_;
  const Scoreboard& board_;
  Timers& timers_;
  const Config& config_;
  uint64_t end_ = 0;  // TLP.end_seq
  ProbeState state_ = ProbeState::None;
  ProbeTurn turn_ = ProbeTurn::Open;
  uint32_t count_ = 0;  // probes since the peer last answered; 0 unless unmeasured()
};

}  // namespace rnic::tcp

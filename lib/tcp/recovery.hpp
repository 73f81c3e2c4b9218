/// \file
/// Loss recovery: the recovery point, and how much may be sent until it is reached (RFC 6675 s.5,
/// RFC 6582, RFC 6937 in its variant PRR-SSRB).
#pragma once

#include <algorithm>
#include <cstdint>

#include "tcp/ack_result.hpp"
#include "tcp/congestion.hpp"
#include "tcp/recovery_phase.hpp"
#include "tcp/scoreboard.hpp"
#include "tcp/tcb.hpp"

namespace rnic::tcp {

class Recovery {
 public:
  /// Both parameters outlive this.
  Recovery(Scoreboard& board, Congestion& congestion) : board_(board), cc_(congestion) {}

  [[nodiscard]] RecoveryPhase phase() const { return phase_; }
  [[nodiscard]] bool open() const { return phase_ == RecoveryPhase::Open; }
  /// RecoveryPoint (RFC 6675 s.5 step 4.1): SND.NXT when the recovery began.
  [[nodiscard]] uint64_t point() const { return point_; }
  /// All data that was sent before the recovery began is acknowledged.
  [[nodiscard]] bool complete() const { return !open() && board_.tcb().snd_una >= point_; }

  /// Begins a fast recovery (RFC 6675 s.5 step 4).
  void enter();
  /// Begins the recovery that follows a time-out (RFC 6298 s.5.4).
  void time_out();
  /// Ends the recovery. After a fast recovery cwnd becomes ssthresh (RFC 6582 s.3.2, RFC 6937 s.3).
  void leave();
  /// The recovery was spurious.
  void undo() { end(); }

  /// Finds losses without SACK: RFC 6582 in terms of a scoreboard. \param result `delivered` is
  /// corrected by the octets that duplicate ACKs stand for. \return new losses were found
  [[nodiscard]] bool detect_by_duplicates(AckResult& result, uint32_t smss);
  /// PRR, proportional rate reduction (RFC 6937 s.3): sets cwnd. Where pipe is below ssthresh, cwnd
  /// grows by the slow start reduction bound, PRR-SSRB; the conservative reduction bound, PRR-CRB,
  /// is not used. \param delivered DeliveredData (s.2) of an ACK
  void proportional_rate(uint64_t delivered, uint32_t smss);

  /// Octets were sent.
  void sent(uint64_t octets) {
    if (phase_ == RecoveryPhase::Recovery) prr_out_ += octets;
  }
  /// A lost segment was retransmitted.
  void retransmitted() { forced_ = false; }
  /// SND.UNA has advanced.
  void progressed() {
    if (alone()) set_phase(RecoveryPhase::Loss);
  }
  /// The next retransmission is sent whatever pipe is.
  [[nodiscard]] bool forced() const { return forced_; }
  /// Only that retransmission may be sent: no new ACK has arrived since the time-out.
  [[nodiscard]] bool alone() const { return phase_ == RecoveryPhase::TimedOut; }

  [[nodiscard]] uint64_t prr_delivered() const { return prr_delivered_; }
  [[nodiscard]] uint64_t prr_out() const { return prr_out_; }
  [[nodiscard]] uint64_t recover_fs() const { return recover_fs_; }
  void validate() const;

 private:
  /// The one place that sets the phase.
  void set_phase(RecoveryPhase next);
  void end();
  /// The third duplicate ACK arrived after a time-out. \return a new loss was found
  bool lost_again(uint32_t smss);
  bool front_lost_again();

  Scoreboard& board_;
  Congestion& cc_;
  RecoveryPhase phase_ = RecoveryPhase::Open;
  bool forced_ = false;  // true only in a recovery
  uint64_t point_ = 0;
  uint64_t prr_delivered_ = 0;
  uint64_t prr_out_ = 0;
  uint64_t recover_fs_ = 0;  // RecoverFS (RFC 6937 s.3): FlightSize when the recovery began
};

}  // namespace rnic::tcp

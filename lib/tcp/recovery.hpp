/// \file
/// A loss that is being repaired: from where on it is over, and what may go out until then (RFC
/// 6675 s.5, RFC 6582, RFC 6937).
#pragma once

#include <algorithm>
#include <cstdint>

#include "tcp/ack_yield.hpp"
#include "tcp/congestion.hpp"
#include "tcp/scoreboard.hpp"
#include "tcp/tcb.hpp"

namespace rnic::tcp {

enum class RecoveryPhase : uint8_t {
  Open,
  Recovery,  ///< of a loss that ACKs told of
  Loss,      ///< behind a retransmission time-out
};

class Recovery {
 public:
  /// All of them outlive this.
  Recovery(Scoreboard& board, Congestion& congestion) : board_(board), cc_(congestion) {}

  [[nodiscard]] RecoveryPhase phase() const { return phase_; }
  [[nodiscard]] bool open() const { return phase_ == RecoveryPhase::Open; }
  /// RecoveryPoint: SND.NXT when it began.
  [[nodiscard]] uint64_t point() const { return point_; }
  /// All that was sent before it began is acknowledged.
  [[nodiscard]] bool complete() const { return !open() && board_.tcb().snd_una >= point_; }

  /// RFC 6675 s.5 step 4.
  void enter();
  /// RFC 6298 s.5.4.
  void time_out();
  /// RFC 6582 s.3.2, RFC 6937 s.3: cwnd is ssthresh behind a fast recovery.
  void leave();
  /// It was for nothing.
  void undo() { end(); }

  /// Losses without SACK: RFC 6582 in the terms of a scoreboard. \param yield what duplicate ACKs
  /// have told of is taken off, or added. \return some are new
  [[nodiscard]] bool detect_by_duplicates(AckYield& yield, uint32_t smss);
  /// Proportional rate reduction (RFC 6937 s.3) by what an ACK delivered: sets cwnd.
  void proportional_rate(uint64_t delivered, uint32_t smss);

  /// Octets went out.
  void sent(uint64_t octets) {
    if (phase_ == RecoveryPhase::Recovery) prr_out_ += octets;
  }
  /// One segment that was lost has.
  void retransmitted() { forced_ = false; }
  /// SND.UNA has moved.
  void progressed() { alone_ = false; }
  /// The next retransmission goes out whatever pipe says.
  [[nodiscard]] bool forced() const { return forced_; }
  /// And nothing behind it: a time-out's has no new ACK yet.
  [[nodiscard]] bool alone() const { return alone_; }

  [[nodiscard]] uint64_t prr_delivered() const { return prr_delivered_; }
  [[nodiscard]] uint64_t prr_out() const { return prr_out_; }
  [[nodiscard]] uint64_t recover_fs() const { return recover_fs_; }
  void validate() const;

 private:
  void end();
  /// A duplicate tells behind a time-out. \return a loss is new
  bool lost_again(uint32_t smss);
  bool front_lost_again();

  Scoreboard& board_;
  Congestion& cc_;
  RecoveryPhase phase_ = RecoveryPhase::Open;
  bool forced_ = false;
  bool alone_ = false;
  uint64_t point_ = 0;
  uint64_t prr_delivered_ = 0;
  uint64_t prr_out_ = 0;
  uint64_t recover_fs_ = 0;  // octets in flight when it began
};

}  // namespace rnic::tcp

/// \file
/// Detection of spurious retransmissions: by F-RTO (RFC 5682), by timestamps (Eifel, RFC 3522 and
/// RFC 4015) or by D-SACK (RFC 2883).
#pragma once

#include <cstdint>

#include "base/time.hpp"
#include "tcp/ack_result.hpp"
#include "tcp/config.hpp"
#include "tcp/congestion.hpp"
#include "tcp/frto_step.hpp"
#include "tcp/prediction.hpp"
#include "tcp/rto_estimator.hpp"
#include "tcp/tcb.hpp"
#include "tcp/undo_state.hpp"

namespace rnic::tcp {

/// The caller undoes the reduction and then calls undone().
class SpuriousDetector {
 public:
  enum class Verdict : uint8_t { None, Frto, Eifel };

  /// All parameters outlive this.
  SpuriousDetector(const Tcb& tcb, RtoEstimator& rto, Congestion& congestion, const Config& config)
      : tcb_(tcb), rto_(rto), cc_(congestion), config_(config) {}

  /// Saves the state that an undo would restore (RFC 4015 s.3.1 step 0; RFC 5682 s.3.1 step 1).
  /// Called before the reduction for a loss or a time-out, outside of any recovery.
  void watch(bool timeout, base::Now now);
  /// A time-out came during a recovery. The state saved for that recovery stays, and F-RTO is ruled
  /// out (RFC 5682 s.3.1).
  void watch_on();
  /// The retransmission timer has fired.
  void timed_out(base::Now now) { timeout_ts_ = tcb_.timestamp(now); }
  /// Octets were retransmitted in a recovery.
  void retransmitted(uint64_t octets) { undo_octets_ += static_cast<int64_t>(octets); }
  /// The recovery is over.
  void recovered() { end_frto(); }
  /// The recovery was spurious and was undone. \param timeout the recovery had begun with a
  /// time-out: the detector waits for a sample and ends `prediction`
  void undone(bool timeout, Prediction& prediction);

  /// Judges an ACK in a recovery. \param result keep_window is set if this call sets cwnd. \param
  /// point the recovery point. \param fack highest offset known to have arrived. \param new_data a
  /// full segment of new data could go out
  [[nodiscard]] Verdict detect(AckResult& result, uint64_t point, uint64_t fack, bool new_data);
  /// Counts octets that a D-SACK reports. \return every retransmission has arrived as a duplicate:
  /// nothing was lost
  [[nodiscard]] bool dsack(uint64_t octets);

  /// F-RTO is under way: it allows only the first segment until its ACK, and then two segments of
  /// new data.
  [[nodiscard]] bool frto() const { return frto_ != FrtoStep::Off; }
  [[nodiscard]] FrtoStep frto_step() const { return frto_; }
  [[nodiscard]] bool frto_sends() const { return frto_ == FrtoStep::SendNew; }
  /// A segment of new data went out, as frto_sends() allowed.
  void frto_sent() {
    if (--frto_new_ == 0) set_frto(FrtoStep::AwaitSecond);
  }
  /// There was no new data: conventional recovery goes on.
  void frto_over() { end_frto(); }

  [[nodiscard]] UndoState undo_state() const { return undo_; }
  /// SND.UNA has not advanced since watch().
  [[nodiscard]] bool unmoved() const { return tcb_.snd_una == undo_marker_; }
  /// The echoed timestamp is older than the last time-out.
  [[nodiscard]] bool before_timeout(uint32_t echo) const {
    return static_cast<int32_t>(echo - timeout_ts_) < 0;
  }
  /// The sample of RFC 4015 s.3.1 step 11 is still awaited.
  [[nodiscard]] bool adapts() const { return adapt_rto_; }
  /// \return the sample of this ACK, which is beyond `point`, is the one that step 11 waits for
  [[nodiscard]] bool take_adaptation(uint64_t point);
  void validate() const;

 private:
  /// The one place that sets the step.
  void set_frto(FrtoStep next);
  void end_frto() {
    if (frto()) set_frto(FrtoStep::Off);
  }
  /// The one place that sets the state.
  void set_undo(UndoState next);
  void stop_awaiting_echo() {
    if (undo_ == UndoState::AwaitEcho) set_undo(UndoState::Saved);
  }

  static constexpr uint32_t kFrtoSegments = 2;  // segments of new data that step 2b allows

  const Tcb& tcb_;
  RtoEstimator& rto_;
  Congestion& cc_;
  const Config& config_;
  FrtoStep frto_ = FrtoStep::Off;
  UndoState undo_ = UndoState::Nothing;
  bool adapt_rto_ = false;
  uint32_t frto_new_ = 0;       // SendNew: segments of new data that may still go out
  uint32_t retransmit_ts_ = 0;  // timestamp of the first retransmission
  uint32_t timeout_ts_ = 0;     // timestamp of the last time-out
  uint64_t undo_marker_ = 0;    // SND.UNA at watch()
  int64_t undo_octets_ = 0;     // octets retransmitted and not reported as duplicates (RFC 2883)
};

}  // namespace rnic::tcp

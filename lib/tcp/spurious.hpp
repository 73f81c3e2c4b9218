/// \file
/// Retransmissions that were for nothing: found by F-RTO (RFC 5682), by timestamps (Eifel, RFC 3522
/// and RFC 4015) or by D-SACK (RFC 2883).
#pragma once

#include <cstdint>

#include "base/time.hpp"
#include "tcp/ack_yield.hpp"
#include "tcp/config.hpp"
#include "tcp/congestion.hpp"
#include "tcp/rto.hpp"
#include "tcp/tcb.hpp"

namespace rnic::tcp {

/// Who asks it undoes the reduction: undone() tells it so.
class SpuriousDetector {
 public:
  enum class Verdict : uint8_t { None, Frto, Eifel };

  /// All of them outlive this.
  SpuriousDetector(const Tcb& tcb, RtoEstimator& rto, Congestion& congestion, const Config& config)
      : tcb_(tcb), rto_(rto), cc_(congestion), config_(config) {}

  /// Before the reduction for a loss, or for a time-out, outside of any recovery: saves what it
  /// would be undone to (RFC 4015 s.3.1 step 0; RFC 5682 s.3.1 step 1).
  void watch(bool timeout, base::Now now);
  /// A time-out in a recovery that was under way, which keeps its own way back, and rules F-RTO out
  /// (RFC 5682 s.3.1).
  void watch_on();
  /// The retransmission timer has fired.
  void timed_out(base::Now now) { timeout_ts_ = tcb_.timestamp(now); }
  /// Octets were sent again in a recovery.
  void retransmitted(uint64_t octets) { undo_octets_ += static_cast<int64_t>(octets); }
  /// The recovery is over.
  void recovered() { frto_ = Frto::Off; }
  /// It was for nothing. \param timeout the recovery was a time-out's
  void undone(bool timeout);

  /// What an ACK in a recovery tells. \param yield keep_window is set where cwnd was. \param point
  /// the recovery's. \param fack highest offset known to have arrived. \param new_data a full
  /// segment of new data could go out
  [[nodiscard]] Verdict detect(AckYield& yield, uint64_t point, uint64_t fack, bool new_data);
  /// \return every retransmission has arrived as a duplicate: nothing was lost
  [[nodiscard]] bool dsack(uint64_t octets);

  /// F-RTO lets out nothing but the first segment until its ACK, then two segments of new data.
  [[nodiscard]] bool frto() const { return frto_ != Frto::Off; }
  [[nodiscard]] bool frto_sends() const { return frto_new_ != 0; }
  void frto_sent() { --frto_new_; }
  /// There was no new data: the conventional recovery goes on.
  void frto_over() { frto_ = Frto::Off; }

  /// SND.UNA has not moved since it began to watch.
  [[nodiscard]] bool unmoved() const { return tcb_.snd_una == undo_marker_; }
  /// The echoed timestamp is from before the last time-out.
  [[nodiscard]] bool before_timeout(uint32_t echo) const {
    return static_cast<int32_t>(echo - timeout_ts_) < 0;
  }
  /// RFC 4015 s.3.1 step 11 waits for its sample.
  [[nodiscard]] bool adapts() const { return adapt_rto_; }
  /// \return the sample of an ACK beyond `point` is this one
  [[nodiscard]] bool take_adaptation(uint64_t point);
  void validate() const;

 private:
  /// RFC 5682 s.3.1.
  enum class Frto : uint8_t {
    Off,
    AwaitAck,  ///< step 2: for the segment that was sent again
    NewData,   ///< step 3: new data went out; what does the next ACK cover?
  };

  const Tcb& tcb_;
  RtoEstimator& rto_;
  Congestion& cc_;
  const Config& config_;
  Frto frto_ = Frto::Off;
  bool may_undo_ = false;     // the state before the reduction is saved
  bool eifel_armed_ = false;  // retransmit_ts_ is set, no new ACK came yet
  bool adapt_rto_ = false;
  uint32_t frto_new_ = 0;       // segments of new data that step 2 still lets out
  uint32_t retransmit_ts_ = 0;  // timestamp of the first retransmission
  uint32_t timeout_ts_ = 0;     // of the last time-out
  uint64_t undo_marker_ = 0;    // SND.UNA when it began
  int64_t undo_octets_ = 0;     // sent again, and not reported as duplicates (RFC 2883)
};

}  // namespace rnic::tcp

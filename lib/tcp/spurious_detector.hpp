/// \file
/// Detection of spurious retransmissions: by F-RTO (RFC 5682), by timestamps (Eifel, RFC 3522 and
/// RFC 4015) or by D-SACK (RFC 2883).
#pragma once

#include <cstdint>

#include "base/time.hpp"
#include "tcp/ack_result.hpp"
#include "tcp/config.hpp"
#include "tcp/congestion.hpp"
#include "tcp/prediction.hpp"
#include "tcp/rto_estimator.hpp"
#include "tcp/tcb.hpp"

namespace rnic::tcp {

/// The caller undoes the reduction and then calls undone().
class SpuriousDetector {
 public:
  enum class Verdict : uint8_t { None, Frto, Eifel };

  /// All parameters outlive this.
  SpuriousDetector(const Tcb& tcb, RtoEstimator& rto, Congestion& congestion, const Config& config)
      : tcb_(tcb), rto_(rto), cc_(congestion), config_(config) {}

  /// Before the reduction for a loss, or for a time-out, outside of any recovery: saves the state
  /// that undo would restore (RFC 4015 s.3.1 step 0; RFC 5682 s.3.1 step 1).
  void watch(bool timeout, base::Now now);
  /// A time-out during a recovery, whose saved state stays. It rules F-RTO out (RFC 5682 s.3.1).
  void watch_on();
  /// The retransmission timer has fired.
  void timed_out(base::Now now) { timeout_ts_ = tcb_.timestamp(now); }
  /// Octets were retransmitted in a recovery.
  void retransmitted(uint64_t octets) { undo_octets_ += static_cast<int64_t>(octets); }
  /// The recovery is over.
  void recovered() { frto_ = Frto::Off; }
  /// The recovery was spurious and was undone. \param timeout it had begun with a time-out: a
  /// sample is waited for, and `prediction` ended
  void undone(bool timeout, Prediction& prediction);

  /// Judges an ACK in a recovery. \param result keep_window is set where this sets cwnd. \param
  /// point the recovery's. \param fack highest offset known to have arrived. \param new_data a full
  /// segment of new data could go out
  [[nodiscard]] Verdict detect(AckResult& result, uint64_t point, uint64_t fack, bool new_data);
  /// \return every retransmission has arrived as a duplicate: nothing was lost
  [[nodiscard]] bool dsack(uint64_t octets);

  /// F-RTO lets out nothing but the first segment until its ACK, then two segments of new data.
  [[nodiscard]] bool frto() const { return frto_ != Frto::Off; }
  [[nodiscard]] bool frto_sends() const { return frto_new_ != 0; }
  void frto_sent() { --frto_new_; }
  /// There was no new data: conventional recovery goes on.
  void frto_over() { frto_ = Frto::Off; }

  /// SND.UNA has not advanced since watch().
  [[nodiscard]] bool unmoved() const { return tcb_.snd_una == undo_marker_; }
  /// The echoed timestamp is older than the last time-out.
  [[nodiscard]] bool before_timeout(uint32_t echo) const {
    return static_cast<int32_t>(echo - timeout_ts_) < 0;
  }
  /// RFC 4015 s.3.1 step 11 waits for its sample.
  [[nodiscard]] bool adapts() const { return adapt_rto_; }
  /// \return the sample of this ACK, which is beyond `point`, is the one that step 11 waits for
  [[nodiscard]] bool take_adaptation(uint64_t point);
  void validate() const;

 private:
  /// RFC 5682 s.3.1.
  enum class Frto : uint8_t {
    Off,
    AwaitAck,  ///< step 2: the ACK of the retransmitted segment
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
  uint32_t timeout_ts_ = 0;     // timestamp of the last time-out
  uint64_t undo_marker_ = 0;    // SND.UNA at watch()
  int64_t undo_octets_ = 0;     // octets retransmitted and not reported as duplicates (RFC 2883)
};

}  // namespace rnic::tcp

/// \file
/// RACK (RFC 8985 s.5 and s.6): a record is lost if another one that was sent sufficiently later
/// has arrived. The latter is RACK.segment, of which only RACK.xmit_ts and RACK.end_seq are kept.
#pragma once

#include <cstdint>
#include <optional>

#include "base/time.hpp"
#include "tcp/rto_estimator.hpp"
#include "tcp/scoreboard.hpp"
#include "tcp/tcb.hpp"
#include "tcp/timers.hpp"

namespace rnic::tcp {

class Rack {
 public:
  /// All parameters outlive this. Losses are marked on the scoreboard; the reordering timer is
  /// Timer::Reorder.
  Rack(const RtoEstimator& rto, Scoreboard& board, Timers& timers)
      : rto_(rto), board_(board), timers_(timers) {}

  /// A record has arrived: RACK_update() (RFC 8985 s.6.2 step 2) and RACK_detect_reordering() (step
  /// 3). Step 1, the minimum of the RTT, is RtoEstimator's. \param echo TSecr, if it belongs to
  /// this record. \param fack RACK.fack before
  void delivered(const Record& record, std::optional<uint32_t> echo, uint64_t fack, base::Now now) {
    if (record.is(record_flag::kResent)) [[unlikely]] {
      if (!of_last_transmission(record, echo, now)) {
        first_came_late(record, now);
        return;
      }
    } else if (record.end() < fack) {
      reordering_seen_ = true;  // it was reordered, not lost
      learn(now - record.sent_at - rtt_);
    }
    delivered(record.sent_at, record.end(), now);
  }
  /// Takes a record that was sent once and arrived in order. \param end end of the record.
  /// \return it was sent later than all records that arrived before
  bool delivered(base::Now sent_at, uint64_t end, base::Now now) {
    if (!sent_after(sent_at, end, xmit_at_, end_)) return false;
    rtt_ = now - sent_at;
    xmit_at_ = sent_at;
    end_ = end;
    return true;
  }
  /// Widens the reordering window, because a D-SACK came: the first half of RACK_update_reo_wnd()
  /// (RFC 8985 s.6.2 step 4). The second half is reorder_window().
  void dsack();
  /// The oldest record in flight was sent before the latest-sent record that arrived. Unless this
  /// holds, detect() finds nothing as long as no retransmission is in flight, since the oldest
  /// record was sent first.
  [[nodiscard]] bool overtaken() const;
  /// Marks losses and starts the timer for records that may be reordered: RACK_detect_loss() and
  /// RACK_detect_loss_and_arm_timer() (RFC 8985 s.6.2 step 5), in the place of IsLost() (RFC 6675
  /// s.4). \param recovering a recovery is under way. \return new losses were found
  bool detect(bool recovering, base::Now now);
  /// Stops the timer: nothing is in flight, or all of it counts as lost.
  void stop() { timers_.clear(Timer::Reorder); }
  /// A recovery has ended.
  void recovered();
  /// A retransmission was spurious: no other record is to be marked lost because of it.
  void undo() {
    xmit_at_ = {};
    end_ = 0;
  }

  /// The time of the last transmission of the latest-sent record that arrived.
  [[nodiscard]] base::Now xmit_at() const { return xmit_at_; }
  [[nodiscard]] bool reordering_seen() const { return reordering_seen_; }
  [[nodiscard]] uint32_t window_multiplier() const { return window_multiplier_; }
  /// The longest time by which a record came later than one that was sent behind it.
  [[nodiscard]] base::Duration extent() const { return extent_; }
  void validate() const;

 private:
  static constexpr uint8_t kMaxWindowMultiplier = 32;
  static constexpr uint8_t kWindowPersist = 16;  // s.6.2: recoveries that keep a widened window

  /// RACK_sent_after() (RFC 8985 s.6.2 step 2): was (t1, end1) sent after (t2, end2)?
  [[nodiscard]] static bool sent_after(base::Now t1, uint64_t end1, base::Now t2, uint64_t end2) {
    return t1 > t2 || (t1 == t2 && end1 > end2);
  }
  /// The record was sent again, and the copy that has arrived is the last transmission, not an
  /// earlier one (s.6.2 step 2).
  [[nodiscard]] bool of_last_transmission(const Record& record, std::optional<uint32_t> echo,
                                          base::Now now) const;
  /// A record came so much later than one that was sent behind it.
  void learn(base::Duration extent);
  /// A transmission of the record before its last one has arrived, although it counted as lost.
  void first_came_late(const Record& record, base::Now now);
  [[nodiscard]] base::Duration most_extent() const { return rto_.config().reordering_max; }
  /// RACK.reo_wnd (s.5.3), as step 4 has it now.
  [[nodiscard]] base::Duration reorder_window(bool recovering) const;

  const RtoEstimator& rto_;
  Scoreboard& board_;
  Timers& timers_;
  // RFC 8985 s.5.3.
  base::Now xmit_at_{};    // RACK.xmit_ts
  uint64_t end_ = 0;       // RACK.end_seq: end of that record
  base::Duration rtt_{0};  // RACK.rtt
  // RACK.dsack_round: SND.NXT at the last D-SACK that counted. One D-SACK counts in a round trip.
  uint64_t dsack_round_ = 0;
  uint8_t window_multiplier_ = 1;            // RACK.reo_wnd_mult
  uint8_t window_persist_ = kWindowPersist;  // RACK.reo_wnd_persist
  bool reordering_seen_ = false;             // RACK.reordering_seen
  // Beyond RFC 8985; kept as long as a widened window is. 0: no reordering was measured.
  base::Duration extent_{0};
};

}  // namespace rnic::tcp

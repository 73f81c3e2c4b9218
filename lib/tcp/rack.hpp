/// \file
/// RACK (RFC 8985 s.5 and s.6): a record is lost if one that was sent sufficiently later has
/// arrived.
#pragma once

#include <cstdint>
#include <optional>

#include "base/time.hpp"
#include "tcp/rto.hpp"
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

  /// A record that was sent once has arrived (s.6.2 step 2). \param end of the record \return it
  /// was sent later than all records that arrived before
  bool delivered(base::Now sent_at, uint64_t end, base::Now now) {
    if (!sent_after(sent_at, end, xmit_at_, end_)) return false;
    rtt_ = now - sent_at;
    xmit_at_ = sent_at;
    end_ = end;
    return true;
  }
  /// A record has arrived (s.6.2 steps 1 to 3). \param echo TSecr, if it belongs to this record.
  /// \param fack RACK.fack before
  void delivered(const Record& r, std::optional<uint32_t> echo, uint64_t fack, base::Now now) {
    if (r.is(record_flag::kResent)) [[unlikely]] {
      if (!of_last_transmission(r, echo, now)) return;  // step 1
    } else if (r.end() < fack) {
      reordering_seen_ = true;  // step 3: it was reordered, not lost
    }
    delivered(r.sent_at, r.end(), now);
  }
  /// A D-SACK came (s.6.2 step 4).
  void dsack();
  /// The oldest record in flight was sent before the latest-sent record that arrived. Where no
  /// retransmission is in flight detect() finds nothing unless this holds, since the oldest record
  /// was sent first.
  [[nodiscard]] bool overtaken() const;
  /// Marks losses and starts the timer for records that may be reordered (s.6.2 step 5). \param
  /// recovering a recovery is under way. \return new losses were found
  bool detect(bool recovering, base::Now now);
  /// A recovery has ended.
  void recovered();
  /// A retransmission was spurious: no other record is to be marked lost because of it.
  void undo() {
    xmit_at_ = {};
    end_ = 0;
  }

  /// Last transmission of the latest-sent record that arrived (RACK.xmit_ts).
  [[nodiscard]] base::Now xmit_at() const { return xmit_at_; }
  [[nodiscard]] bool reordering_seen() const { return reordering_seen_; }
  [[nodiscard]] uint32_t window_multiplier() const { return window_multiplier_; }
  void validate() const;

 private:
  static constexpr uint32_t kMaxWindowMultiplier = 32;
  static constexpr uint32_t kWindowPersist = 16;  // s.6.2: recoveries that keep a widened window

  /// s.6.1: was (t1, end1) sent after (t2, end2)?
  [[nodiscard]] static bool sent_after(base::Now t1, uint64_t end1, base::Now t2, uint64_t end2) {
    return t1 > t2 || (t1 == t2 && end1 > end2);
  }
  [[nodiscard]] bool of_last_transmission(const Record& r, std::optional<uint32_t> echo,
                                          base::Now now) const;
  [[nodiscard]] base::Duration reorder_window(bool recovering) const;

  const RtoEstimator& rto_;
  Scoreboard& board_;
  Timers& timers_;
  base::Now xmit_at_{};
  uint64_t end_ = 0;  // end of that record
  base::Duration rtt_{0};
  uint32_t window_multiplier_ = 1;
  uint32_t window_persist_ = kWindowPersist;
  // SND.NXT at the last D-SACK that counted, which one does in a round trip.
  uint64_t dsack_round_ = 0;
  bool reordering_seen_ = false;
};

}  // namespace rnic::tcp

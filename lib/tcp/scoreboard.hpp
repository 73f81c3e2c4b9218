/// \file
/// The sender's scoreboard (RFC 6675 s.3): the unacknowledged records, and for each of their octets
/// whether it has arrived, is lost, or was retransmitted.
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <span>

#include "tcp/prediction.hpp"
#include "tcp/range_pool.hpp"
#include "tcp/record_queue.hpp"
#include "tcp/tcb.hpp"

namespace rnic::tcp {

inline constexpr uint32_t kDupThresh = 3;  // RFC 5681 s.3.2, RFC 6675 s.5

/// The sums count octets between SND.UNA and SND.NXT. RFC 6675 s.2 names the octets before these
/// two HighACK and HighData. Rack finds the lost records and calls lose().
class Scoreboard {
 public:
  /// \param tcb outlives this; SND.UNA and SND.NXT are read from it. \param prediction is ended
  /// when clean() becomes false
  Scoreboard(const Tcb& tcb, RecordPool& pool, RangePool& ranges, Prediction& prediction)
      : tcb_(tcb), prediction_(prediction), records_(pool), sacked_(ranges) {}

  // --- The records: numbered from first() to past_last() - 1, end to end from SND.UNA on ---

  /// The Tcb with SND.UNA and SND.NXT, which bound the sums.
  [[nodiscard]] const Tcb& tcb() const { return tcb_; }
  [[nodiscard]] bool empty() const { return records_.empty(); }
  /// There is no room for another record: a limit of the connection or of the stack is reached.
  [[nodiscard]] bool full() const { return records_.full(); }
  /// See RecordQueue.
  [[nodiscard]] uint32_t places(uint32_t most) const { return records_.places(most); }
  [[nodiscard]] uint64_t size() const { return records_.size(); }
  /// See RecordQueue.
  [[nodiscard]] uint64_t chunks() const { return records_.chunks(); }
  [[nodiscard]] bool is_wide() const { return records_.is_wide(); }
  [[nodiscard]] uint64_t first() const { return records_.first(); }
  [[nodiscard]] uint64_t past_last() const { return records_.past_last(); }
  [[nodiscard]] const Record& at(uint64_t number) const { return records_.at(number); }
  [[nodiscard]] const Record& front() const { return records_.front(); }
  [[nodiscard]] const Record& back() const { return records_.back(); }
  [[nodiscard]] const Record* row_end() const { return records_.row_end(); }
  /// Number of the first record whose end lies beyond `offset`; past_last() when there is none.
  [[nodiscard]] uint64_t find(uint64_t offset) const { return records_.find(offset); }
  /// End of the last record; >= SND.NXT.
  [[nodiscard]] uint64_t queue_end() const { return queue_end_; }
  /// The last record has not been sent, or only a part of it.
  [[nodiscard]] bool has_waiting() const { return queue_end_ > tcb_.snd_nxt; }
  /// Sequence numbers of a record that are sent and not cumulatively acknowledged.
  [[nodiscard]] uint64_t live(const Record& record) const {
    const uint64_t begin = std::max(record.offset, tcb_.snd_una);
    const uint64_t end = std::min(record.end(), tcb_.snd_nxt);
    return end > begin ? end - begin : 0;
  }
  /// Number of the first record behind a segment as first sent. \param number a record of it
  [[nodiscard]] uint64_t segment_end(uint64_t number) const;
  /// Octets from `offset` to the end of its segment as first sent, at most `emss`; 0: nothing was
  /// sent at this offset.
  [[nodiscard]] uint32_t segment_at(uint64_t offset, uint32_t emss) const;

  // --- State ---

  /// Octets in the network: Pipe (RFC 6675 s.2) as SetPipe() computes it (s.4).
  [[nodiscard]] uint64_t pipe() const {
    const uint64_t gone = sacked_octets_ + lost_octets_ + reno_sacked_;
    const uint64_t there = tcb_.flight() + retransmitted_octets_;
    return there > gone ? there - gone : 0;
  }
  [[nodiscard]] uint64_t sacked_octets() const { return sacked_octets_; }
  [[nodiscard]] uint32_t sacked_segments() const { return sacked_segments_; }
  [[nodiscard]] uint64_t lost_octets() const { return lost_octets_; }
  [[nodiscard]] uint64_t retransmitted_octets() const { return retransmitted_octets_; }
  /// Some octets are lost and not retransmitted yet.
  [[nodiscard]] bool owes_retransmission() const { return lost_octets_ != retransmitted_octets_; }
  /// Highest offset known to have arrived.
  [[nodiscard]] uint64_t fack() const { return fack_; }
  /// Ranges above SND.UNA that the peer reported.
  [[nodiscard]] const PooledRanges& sacked() const { return sacked_; }
  /// No record has arrived out of order or is lost, and each was sent once, whole, and as pulled,
  /// so that a cumulative ACK says all there is to know.
  [[nodiscard]] bool clean() const {
    return sacked_.empty() && lost_octets_ == 0 && sacked_octets_ == 0 && reno_sacked_ == 0 &&
           duplicate_acks_ == 0 && fack_ <= tcb_.snd_una && altered_until_ <= tcb_.snd_una;
  }
  /// The lowest record that is lost and not retransmitted yet, or past_last(): NextSeg() rule 1
  /// (RFC 6675 s.4). Rule 2, new data, is Sender's. Rule 3 is not needed, since RACK's timer finds
  /// what it would guess, and a TailProbe in the recovery takes the place of RescueRxt (rule 4).
  [[nodiscard]] uint64_t next_lost();

  // --- Sending ---

  /// Appends a record at queue_end(). full() must be false. \param record gets its offset here
  void push(Record record) {
    if (record.is(record_flag::kFin)) prediction_.end();
    record.offset = queue_end_;
    records_.push_back(record);
    queue_end_ += record.length;
  }
  /// Appends records that have a segment each, for which places() has said that there is room.
  void push_segments(std::span<const llp::Pulled> pulled, base::Now sent_at) {
    records_.push_back(static_cast<uint32_t>(pulled.size()), [&](Record& record, uint32_t i) {
      record.offset = queue_end_;
      record.tag = pulled[i].tag;
      record.length = pulled[i].length;
      record.saved = kNoSaved;
      record.sent_at = sent_at;
      record.flags = record_flag::kSegmentStart;
      queue_end_ += pulled[i].length;
    });
  }
  /// SavedRecords keeps a copy of the record, which is to be cut over several segments.
  void keep(uint64_t number, uint32_t saved);
  /// The record was sent in more than one segment. \return it was not cut before
  bool cut(uint64_t number);
  /// The next octets of back(), which is not sent completely, are sent. SND.NXT advances
  /// afterwards.
  void sent_piece(uint32_t octets, base::Now now);
  /// The unacknowledged part of the record was retransmitted.
  void resent(uint64_t number, base::Now now);

  // --- An ACK ---

  /// The whole of front() was acknowledged. SND.UNA advances afterwards.
  void pop_front() {
    constexpr uint16_t kMarks =
        record_flag::kSacked | record_flag::kLost | record_flag::kRetransmitted;
    if (front().is(kMarks)) {
      pop_marked();
    } else {
      records_.pop_front();
    }
  }
  /// Removes records while clean() holds. \param count their number; none may be at or beyond
  /// row_end()
  void pop_clean(uint32_t count) { records_.pop_front(count); }
  /// Removes SACKed records that are acknowledged. \param count their number, not 0; none may be
  /// at or beyond row_end()
  void pop_sacked(uint32_t count);
  /// No whole record is left below `ack`, to which SND.UNA advances afterwards. \return octets
  /// below `ack` of a record that is acknowledged in part and was not SACKed before
  uint64_t advance(uint64_t ack);
  /// Update() (RFC 6675 s.4) for one block. \param block between SND.UNA and SND.NXT. \param
  /// arrived called with each record that the block completes, and its live octets
  template <typename Arrived>
  void sack(base::Range block, Arrived&& arrived);
  /// The record is presumed lost; so is its retransmission, if there was one.
  void lose(uint64_t number);
  void lose_first_segment();
  /// A time-out: marks all data in flight as lost and forgets SACKs (RFC 2018 s.5).
  void lose_all();
  /// No record counts as lost until it is found lost again.
  void undo_losses();

  // --- Without SACK (RFC 6582): each duplicate ACK stands for a segment that left the network ---

  [[nodiscard]] uint32_t duplicate_acks() const { return duplicate_acks_; }
  /// Octets that the duplicate ACKs stand for.
  [[nodiscard]] uint64_t reno_sacked() const { return reno_sacked_; }
  /// Octets of the segment at SND.UNA; 0: not determined yet.
  [[nodiscard]] uint32_t hole() const { return hole_; }
  /// Octets that the latest new ACK covered.
  [[nodiscard]] uint32_t reno_advance() const { return reno_advance_; }
  /// Some retransmissions of a time-out below this offset were lost.
  [[nodiscard]] uint64_t lost_again_to() const { return lost_again_to_; }

  /// A new ACK has arrived. \return octets of `acked` for which duplicate ACKs have counted before
  uint64_t reno_acked(uint64_t acked, bool partial, uint32_t emss);
  /// A duplicate ACK has arrived. \param counts the octets that it stands for leave pipe(). \return
  /// these octets
  uint64_t reno_duplicate(bool counts, uint32_t emss);
  void note_lost_again() { lost_again_to_ = at(next_lost() - 1).end(); }
  void forget_duplicates() {
    reno_sacked_ = 0;
    duplicate_acks_ = 0;
  }

  /// The connection is over.
  void clear() { records_.clear(); }
  void validate() const;

  /// A recovery begins: the next segments are not predicted.
  void end_prediction() { prediction_.end(); }

 private:
  void pop_marked();
  void check_records() const;
  void check_sums() const;
  void check_sacked() const;
  void check_duplicates() const;
  void subtract_marks(const Record& record, uint64_t octets);
  /// Marks the record as SACKed. \return its live octets
  uint64_t mark_sacked(Record& record);
  /// Records below `end` have changed since they were first sent, so that clean() is false until
  /// they are acknowledged.
  void note_altered(uint64_t end) {
    altered_until_ = std::max(altered_until_, end);
    prediction_.end();
  }

  const Tcb& tcb_;
  Prediction& prediction_;
  RecordQueue records_;
  uint64_t queue_end_ = 0;
  // No record below this number has to be retransmitted. It takes the place of HighRxt (RFC 6675
  // s.2), but goes back when a retransmission is lost.
  uint64_t retransmit_hint_ = 0;
  uint64_t altered_until_ = 0;  // records from this offset on were sent once, whole, and as pulled
  PooledRanges sacked_;         // Invariant: between SND.UNA and SND.NXT.
  uint64_t fack_ = 0;
  uint64_t sacked_octets_ = 0;         // of records flagged kSacked
  uint64_t lost_octets_ = 0;           // of records flagged kLost
  uint64_t retransmitted_octets_ = 0;  // of records flagged kRetransmitted; each is also kLost
  uint32_t sacked_segments_ = 0;       // kSacked records that began a segment
  uint32_t duplicate_acks_ = 0;
  uint64_t reno_sacked_ = 0;
  uint32_t reno_advance_ = 0;
  uint32_t hole_ = 0;
  uint64_t lost_again_to_ = 0;
};

template <typename Arrived>
void Scoreboard::sack(base::Range block, Arrived&& arrived) {
  // Only records that the new parts of the block touch are looked at, so that the work is bounded
  // by the octets that ACKs newly report, however often they repeat the same ranges. A record that
  // reaches into a later part has arrived with that one.
  for (base::Range rest = block; !rest.empty();) {
    const base::Range gap = sacked_.first_gap(rest);
    if (gap.empty()) return;
    prediction_.end();
    if (!sacked_.insert(gap)) return;  // there are too many ranges; SACK is only advisory
    for (uint64_t n = find(gap.begin); n < past_last(); ++n) {
      Record& record = records_.at(n);
      if (record.offset >= gap.end) break;
      if (record.is(record_flag::kSacked)) continue;
      if (!sacked_.contains({std::max(record.offset, tcb_.snd_una), record.end()})) continue;
      arrived(record, mark_sacked(record));
      fack_ = std::max(fack_, record.end());
    }
    rest.begin = gap.end;
  }
}

}  // namespace rnic::tcp

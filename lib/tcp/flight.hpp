/// \file
/// The data in flight, and what follows from its ACKs or their absence: the round-trip time,
/// losses, recovery and the congestion window.
#pragma once

#include <algorithm>
#include <cstdint>
#include <span>

#include "base/time.hpp"
#include "tcp/ack_result.hpp"
#include "tcp/congestion.hpp"
#include "tcp/connection_core.hpp"
#include "tcp/connection_info.hpp"
#include "tcp/pacing.hpp"
#include "tcp/rack.hpp"
#include "tcp/recovery.hpp"
#include "tcp/rto_estimator.hpp"
#include "tcp/scoreboard.hpp"
#include "tcp/spurious_detector.hpp"
#include "tcp/tail_probe.hpp"
#include "wire/tcp_options.hpp"

namespace rnic::tcp {

/// Flight advances SND.UNA and SND.NXT and tells the user which records were acknowledged.
class Flight {
 public:
  /// Both parameters outlive this. Flight uses Timer::Rto, and its parts use Timer::Probe,
  /// Timer::Reorder and Timer::Pacing.
  Flight(ConnectionCore& core, Timers& timers);

  [[nodiscard]] const Scoreboard& board() const { return board_; }
  [[nodiscard]] const RtoEstimator& rto() const { return rto_; }
  [[nodiscard]] const Congestion& congestion() const { return cc_; }
  [[nodiscard]] const Rack& rack() const { return rack_; }
  [[nodiscard]] const TailProbe& tail_probe() const { return tail_probe_; }
  [[nodiscard]] const Recovery& recovery() const { return recovery_; }
  [[nodiscard]] const SpuriousDetector& spurious() const { return spurious_; }
  [[nodiscard]] const Pacing& pacing() const { return pacing_; }
  /// The precondition of header prediction: the next ACK can only acknowledge octets that were sent
  /// once.
  [[nodiscard]] bool predictable() const {
    return recovery_.open() && tail_probe_.idle() && !spurious_.adapts() && board_.clean() &&
           !timers_.runs(Timer::Reorder);
  }

  // --- Before, and at, ESTABLISHED ---

  void select(CongestionControl control, bool paced);
  /// EMSS has changed.
  void set_smss(uint32_t smss) { cc_.set_smss(smss); }
  void begin(base::Now now) { progress_at_ = last_sent_at_ = now; }
  /// Our SYN or SYN-ACK went out. \param first it had not gone out before
  void syn_sent(bool first, base::Now now);
  /// Timer::Rto has fired for our SYN or SYN-ACK: stops the timer and backs off.
  void syn_timed_out();
  /// A refused SYN will be asked for again then, by Timer::Rto.
  void ask_syn_at(base::Now at) { timers_.set(Timer::Rto, at); }
  /// That time has come: stops the timer, and does not back off, as the peer has answered.
  void syn_asked() { timers_.clear(Timer::Rto); }
  /// \param measures the handshake measures the round trip (Karn's rule)
  void measure_handshake(bool measures, base::Now now) {
    if (measures) rto_.sample(now - last_sent_at_, now);
  }
  /// \param syn_tries how often our SYN timed out. \param timed_out whether it may have timed out
  void establish(uint32_t syn_tries, bool timed_out, base::Now now);

  // --- Sending ---

  /// cwnd holds `octets` back, unless nothing is in flight.
  [[nodiscard]] bool holds_back(uint64_t octets) {
    return board_.pipe() != 0 && exceeds_window(octets);
  }
  [[nodiscard]] bool exceeds_window(uint64_t octets) {
    if (board_.pipe() + octets <= cc_.cwnd()) return false;
    cwnd_full_to_ = core_.tcb.snd_nxt;
    return true;
  }
  /// Pacing holds the next segment back.
  [[nodiscard]] bool gate_closed(base::Now now);
  /// Nothing is in flight, nor was sent for longer than the RTO (RFC 5681 s.4.1).
  [[nodiscard]] bool was_idle(base::Now now) const {
    return core_.tcb.flight() == 0 && now - last_sent_at_ > rto_.rto();
  }
  /// Reduces cwnd after an idle time. Called before new data is sent.
  void restart_after_idle(base::Now now);
  void push(const Record& record) { board_.push(record); }
  void push_segments(std::span<const llp::Pulled> pulled, base::Now sent_at) {
    board_.push_segments(pulled, sent_at);
  }
  void keep(uint64_t number, uint32_t saved) { board_.keep(number, saved); }
  void cut(uint64_t number) {
    if (board_.cut(number)) ++core_.shared.counters.resegmented_records;
  }
  void sent_piece(uint32_t octets, base::Now now) { board_.sent_piece(octets, now); }
  /// New octets went out, or the FIN.
  void sent(uint64_t octets, base::Now now) {
    advance_nxt(octets, now);
    note_sent(octets, now);
  }
  /// Does the first part of sent(): SND.NXT.
  void advance_nxt(uint64_t octets, base::Now now) {
    if (core_.tcb.flight() == 0) progress_at_ = now;
    core_.tcb.snd_nxt += octets;
  }
  /// Does the other part, for all octets that advance_nxt() was called for at this time.
  void note_sent(uint64_t octets, base::Now now);
  /// Octets that cwnd has room for.
  [[nodiscard]] uint64_t window_left() const {
    const uint64_t pipe = board_.pipe();
    return cc_.cwnd() > pipe ? cc_.cwnd() - pipe : 0;
  }
  /// The unacknowledged part of a record was retransmitted.
  void resent(uint64_t number, base::Now now);
  /// See Scoreboard.
  [[nodiscard]] uint64_t next_lost() { return board_.next_lost(); }
  void retransmitted_lost() { recovery_.retransmitted(); }
  /// A segment was sent again.
  void note_resent() { ++resent_segments_; }
  void tail_probe_sent(bool again, uint32_t emss, base::Now now);
  void drop_tail_probe() { tail_probe_.drop(); }
  void frto_sent() { spurious_.frto_sent(); }
  void frto_over() { spurious_.frto_over(); }
  /// Marks segments larger than EMSS as lost, which is no sign of congestion (RFC 1191 s.6.4).
  void lose_larger_than(uint32_t emss);

  // --- An ACK, step by step ---

  /// Advances SND.UNA to `ack`. The user may end the connection meanwhile.
  void advance_una(uint64_t ack, AckResult& result, base::Now now);
  void take_sack(const wire::TcpOptions& options, AckResult& result, base::Now now);
  /// Takes the round-trip sample.
  void measure(AckResult& result, base::Now now);
  /// \return new losses were found
  [[nodiscard]] bool detect_losses(AckResult& result, base::Now now);
  /// Detects losses when the reordering timer has fired.
  [[nodiscard]] bool detect_losses(base::Now now) { return rack_.detect(!recovery_.open(), now); }
  void take_ecn_echo(bool ece, AckResult& result, base::Now now);
  /// \param new_data a full segment of new data could go out
  void detect_spurious(AckResult& result, bool new_data);
  /// Undoes the reduction if every retransmission has arrived as a duplicate (RFC 3708).
  void try_undo(AckResult& result);
  void recover(AckResult& result, bool lost, base::Now now);
  void tail_probe_acked(const AckResult& result);
  void restart_timers(base::Now now);
  void window_opened(base::Now now);
  void progressed(base::Now now) { progress_at_ = now; }

  // --- A predicted ACK, in one step ---

  /// The records that a predicted ACK acknowledges.
  struct PlainAck {
    uint32_t octets = 0;
    uint32_t records = 0;
    bool one_row = true;     ///< they are contiguous in memory
    bool restarted = false;  ///< the timers were restarted by another ACK at the same time
    base::Now sent_at{};     ///< transmission time of the last record
    uint64_t end = 0;        ///< of it
    base::Duration rtt{0};
  };
  /// Octets that the ACK field newly acknowledges, if they include a whole record. 0: they include
  /// none, or the ACK has to take the slow path.
  [[nodiscard]] uint32_t plain_ack(uint32_t ack) const {
    const uint32_t acked = ack - core_.tcb.snd_seq(core_.tcb.snd_una).value;
    const bool moves = uint64_t{acked} - 1 < core_.tcb.flight();
    return moves && board_.front().end() <= core_.tcb.snd_una + acked ? acked : 0;
  }
  /// \param acked not 0
  [[nodiscard]] PlainAck plain_records(uint32_t acked) const;
  /// Tells RACK of the newest record. \return no record that was sent later had arrived before
  [[nodiscard]] bool in_order(const PlainAck& ack, base::Now now) {
    return rack_.delivered(ack.sent_at, ack.end, now);
  }
  /// Advances SND.UNA and takes the round-trip sample. \param echo TSecr, where timestamps are on
  void take_plain_ack(PlainAck& ack, uint32_t echo, base::Now now);
  /// Updates cwnd and the timers.
  void settle_plain_ack(const PlainAck& ack, base::Now now) {
    grow_window(ack.octets, ack.rtt, now);
    restart_predicted(ack.restarted, now);
  }
  /// Tells the user which records were acknowledged. Called last, so that nothing has to be kept in
  /// registers across the call.
  void release(const PlainAck& ack) {
    if (ack.one_row) [[likely]] {
      release_row(ack.records);
    } else {
      release_rows(ack.records);
    }
  }

  // --- Timers ---

  void tail_probe_fired(base::Now now);
  void pacing_fired() { Pacing::fired(timers_); }
  /// The retransmission timer has expired (RFC 6298 s.5.4 to s.5.6). Called before lose_all().
  /// \return it had expired for the same segment before
  [[nodiscard]] bool time_out(base::Now now);
  /// Marks all data in flight as lost. \param again the result of time_out()
  void lose_all(bool again, base::Now now);
  void back_off() { rto_.back_off(); }
  /// There was no progress for the user time-out (R2, RFC 9293 s.3.8.3).
  [[nodiscard]] bool stalled(base::Now now) const {
    return now - progress_at_ >= core_.binding().options.user_timeout;
  }
  /// `next`, or the end of the user time-out when that is earlier.
  [[nodiscard]] base::Now before_give_up(base::Now next, base::Now now) const;

  /// Removes all records and gives their copies back, since the connection ends.
  void clear();
  void describe(ConnectionInfo& info) const;
  void validate() const;

 private:
  [[nodiscard]] const Config& config() const { return core_.shared.config; }
  [[nodiscard]] Counters& counters() { return core_.shared.counters; }
  [[nodiscard]] const Binding& binding() const { return core_.binding(); }
  // RFC 7323 s.5.4
  static constexpr base::Duration kStampTick = std::chrono::milliseconds(1);

  /// Ticks of our clock since the segment was sent whose timestamp the peer has echoed.
  [[nodiscard]] int32_t ticks_since(uint32_t echo, base::Now now) const {
    return static_cast<int32_t>(core_.tcb.timestamp(now) - echo);
  }
  /// RFC 7323 s.4.1: the echoed timestamp is coarse, but it comes from the segment that made the
  /// peer answer. The transmission time of a record would include the time that it waited behind a
  /// hole or that its ACKs were lost. \param ticks below 0: nothing was echoed
  [[nodiscard]] static base::Duration capped_by_echo(base::Duration rtt, int32_t ticks) {
    return ticks < 0 ? rtt : std::min<base::Duration>(rtt, (int64_t{ticks} + 1) * kStampTick);
  }

  void start_recovery(base::Now now);
  void leave_recovery();
  void undo_recovery(AckResult& result);
  void pace(uint64_t octets, base::Now now);
  void grow_window(uint64_t acked, base::Duration rtt, base::Now now) {
    // A window that was not used is no evidence that a larger one fits (RFC 9438 s.5.8). In slow
    // start it is enough that half of it was in flight at once within the last round trip, since
    // cwnd may double in one.
    const bool full = core_.tcb.snd_una - acked < cwnd_full_to_ ||
                      (cc_.in_slow_start() && 2 * uint64_t{flight_peak_} > cc_.cwnd());
    if (!full) {
      cc_.on_unused_window(now);
    } else if (!cc_.gather(acked)) {
      open_window(acked, rtt, now);
    }
  }
  void open_window(uint64_t acked, base::Duration rtt, base::Now now);
  [[nodiscard]] AckSample sample_of(uint64_t acked, base::Duration rtt, base::Now now) const {
    return {.acked = acked,
            .snd_una = core_.tcb.snd_una,
            .snd_nxt = core_.tcb.snd_nxt,
            .rtt = rtt,
            .srtt = rto_.srtt(),
            .now = now};
  }
  /// Does the part of restart_timers() that a predicted ACK needs. A timer may stay armed too
  /// early.
  void restart_predicted(bool restarted, base::Now now) {
    // All ACKs of a burst would set the same times, so the first one is enough.
    if (!restarted || core_.tcb.flight() <= cc_.smss()) restart_alone(now);
  }
  void restart_alone(base::Now now);
  [[nodiscard]] LossState loss_state() const;
  void count_segments(ConnectionInfo& info) const;
  [[nodiscard]] uint32_t sacked_row(uint64_t ack) const;
  void release_row(uint32_t count) {
    core_.binding().user->released_run({board_.front(), count, sizeof(Record)});
    board_.pop_clean(count);
  }
  void release_rows(uint32_t count);

  ConnectionCore& core_;
  Timers& timers_;
  RtoEstimator rto_;
  Congestion cc_;
  Pacing pacing_;
  Scoreboard board_;
  Rack rack_;
  TailProbe tail_probe_;
  Recovery recovery_;
  SpuriousDetector spurious_;
  uint64_t cwnd_full_to_ = 0;  // octets below this offset were sent while cwnd was the limit
  // Largest number of octets in flight since SND.UNA passed flight_peak_to_.
  uint32_t flight_peak_ = 0;      // no window is larger than 2^30 (RFC 7323 s.2.3)
  uint32_t resent_segments_ = 0;  // since the connection began; wraps
  uint64_t flight_peak_to_ = 0;   // the peak is measured anew when SND.UNA reaches this offset
  base::Now last_sent_at_{};
  base::Now progress_at_{};  // last time the peer acknowledged something, or sending began
};

[[gnu::always_inline]] inline Flight::PlainAck Flight::plain_records(uint32_t acked) const {
  // These are the steps of advance_una() that are left for records which were sent once, in order,
  // and carry no marks.
  const uint64_t ack = core_.tcb.snd_una + acked;
  const Record* record = &board_.front();
  const Record* row_end = board_.row_end();
  uint64_t end = record->end();
  uint32_t records = 1;
  bool one_row = true;
  // There is a record for all octets below `ack`, so the loop does not run past the last record.
  for (; end < ack; ++records) {
    const Record* next = record + 1;
    if (next == row_end) [[unlikely]] {
      next = &board_.at(board_.first() + records);
      row_end = next + RecordPool::kChunkRecords;
      one_row = false;
    }
    if (next->end() > ack) break;
    record = next;
    end = record->end();
  }
  return {.octets = acked,
          .records = records,
          .one_row = one_row,
          .sent_at = record->sent_at,
          .end = end};
}

[[gnu::always_inline]] inline void Flight::take_plain_ack(PlainAck& ack, uint32_t echo,
                                                          base::Now now) {
  core_.tcb.snd_una += ack.octets;
  ack.rtt = now - ack.sent_at;
  if (ack.rtt > kStampTick && core_.tcb.ts_ok) [[unlikely]] {
    ack.rtt = capped_by_echo(ack.rtt, ticks_since(echo, now));
  }
  const bool sampled = rto_.offer(ack.rtt, now);
  ack.restarted = progress_at_ == now && !sampled;
  progress_at_ = now;
  if (core_.ecn.on()) {
    cc_.count_marks(sample_of(ack.octets, ack.rtt, now), false);
    core_.ecn.end_holds();
  }
}

}  // namespace rnic::tcp

#include "tcp/flight.hpp"

#include <algorithm>

#include "base/check.hpp"

namespace rnic::tcp {

Flight::Flight(ConnectionCore& core, Timers& timers)
    : core_(core),
      timers_(timers),
      rto_(core.shared.config),
      cc_(core.shared.config),
      board_(core.tcb, core.shared.records, core.shared.ranges, core.prediction),
      rack_(rto_, board_, timers),
      tail_probe_(rto_, board_, timers, core.shared.config),
      recovery_(board_, cc_),
      spurious_(core.tcb, rto_, cc_, core.shared.config) {}

void Flight::select(CongestionControl control, bool paced) {
  cc_.select(control);
  cc_.set_paced(paced);
  pacing_.enable(paced);
}

void Flight::syn_sent(bool first, base::Now now) {
  if (first) last_sent_at_ = now;
  timers_.set(Timer::Rto, now + rto_.rto());
}

void Flight::syn_timed_out() {
  timers_.clear(Timer::Rto);
  rto_.back_off();
}

void Flight::establish(uint32_t syn_tries, bool timed_out, base::Now now) {
  timers_.clear(Timer::Rto);
  progress_at_ = now;
  // RFC 6298 s.5.7: data starts with an RTO of 3 s when the SYN timed out.
  if (timed_out) rto_.restart_at(std::chrono::seconds(3));
  rto_.clear_backoff();
  cc_.start(syn_tries);
}

// --- Sending ---

bool Flight::gate_closed(base::Now now) {
  if (!pacing_.gated()) return false;
  const Pacing::Gate gate = pacing_.ask(timers_, now);
  if (gate == Pacing::Gate::Closes) ++counters().pacing_waits;
  return gate != Pacing::Gate::Open;
}

void Flight::pace(uint64_t octets, base::Now now) {
  // The rate is cwnd / SRTT times a factor above one, so that the window rather than the pace
  // limits the sender.
  if (!rto_.measured()) return;
  const Config& config = core_.shared.config;
  const uint64_t percent =
      cc_.in_slow_start() ? config.pacing_slow_start_percent : config.pacing_percent;
  pacing_.sent(octets, uint64_t{cc_.cwnd()} * percent / 100, rto_.srtt(), now);
}

void Flight::restart_after_idle(base::Now now) {
  if (!was_idle(now) || !config().idle_restart) return;
  cc_.on_idle(progress_at_);
  ++counters().idle_restarts;
}

void Flight::note_sent(uint64_t octets, base::Now now) {
  if (core_.tcb.flight() > flight_peak_ || core_.tcb.snd_una >= flight_peak_to_) {
    flight_peak_ = static_cast<uint32_t>(core_.tcb.flight());
    flight_peak_to_ = core_.tcb.snd_nxt;
  }
  last_sent_at_ = now;
  if (pacing_.on()) pace(octets, now);
  recovery_.sent(octets);
  if (!timers_.runs(Timer::Rto)) {  // RFC 6298 s.5.1: the timer is started, not restarted
    restart_timers(now);
  } else if (recovery_.open() && !tail_probe_.due()) {
    // The probe that follows a probe is armed by TailProbe::sent().
    tail_probe_.arm(recovery_.phase(), cc_.smss(), now, now + rto_.rto());
  }
}

void Flight::resent(uint64_t number, base::Now now) {
  const Record& record = board_.at(number);
  const uint64_t live = board_.live(record);
  board_.resent(number, now);
  last_sent_at_ = now;
  if (pacing_.on()) pace(live, now);
  recovery_.sent(live);
  if (!recovery_.open()) spurious_.retransmitted(live);
  if (!timers_.runs(Timer::Rto)) timers_.set(Timer::Rto, now + rto_.rto());
  if (recovery_.phase() == RecoveryPhase::Recovery && !tail_probe_.due()) {
    tail_probe_.arm(recovery_.phase(), cc_.smss(), now, timers_.at(Timer::Rto));
  }
  if (binding().trace != nullptr) {
    binding().trace->record(TraceKind::Retransmitted, {record.offset, record.end()}, now);
  }
}

void Flight::tail_probe_sent(bool again, uint32_t emss, base::Now now) {
  const base::Now rto = now + rto_.rto();  // RFC 8985 s.7.3: the RTO is restarted
  timers_.set(Timer::Rto, rto);
  tail_probe_.sent(recovery_.phase(), again, emss, now, rto, core_.prediction);
}

void Flight::lose_larger_than(uint32_t emss) {
  for (uint64_t n = board_.first(); n < board_.past_last();) {
    if (board_.at(n).offset >= core_.tcb.snd_nxt) break;
    const uint64_t next = board_.segment_end(n);
    const uint64_t octets = board_.at(next - 1).end() - board_.at(n).offset;
    for (; n < next; ++n) {
      if (octets > emss && !board_.at(n).is(record_flag::kSacked)) board_.lose(n);
    }
  }
}

// --- An ACK ---

/// How many records below `ack`, from the first one on and in one row, were SACKed: all that their
/// arrival has to say was taken then, and nothing is left but to release them.
uint32_t Flight::sacked_row(uint64_t ack) const {
  const Record* const first = &board_.front();
  const auto row = static_cast<uint64_t>(board_.row_end() - first);
  const Record* const end = first + std::min(board_.size(), row);
  const Record* record = first;
  while (record != end && record->is(record_flag::kSacked) && !record->is(record_flag::kFin) &&
         record->saved == kNoSaved && record->end() <= ack) {
    ++record;
  }
  return static_cast<uint32_t>(record - first);
}

void Flight::advance_una(uint64_t ack, AckResult& result, base::Now now) {
  const uint64_t una = core_.tcb.snd_una;
  bool ambiguous = false;
  while (!board_.empty() && board_.front().end() <= ack) {
    if (const uint32_t count = sacked_row(ack); count != 0) {
      binding().user->released_run({board_.front(), count, sizeof(Record)});
      board_.pop_sacked(count);
      if (core_.life.over()) return;
      continue;
    }
    const Record& record = board_.front();
    if (!record.is(record_flag::kSacked)) {
      result.delivered += board_.live(record);
      rack_.delivered(record, result.echo, board_.fack(), now);
      if (record.is(record_flag::kResent)) {
        // Karn's rule: a record that was sent again gives no sample. Records behind this hole give
        // none either, since they waited for the retransmission, not for the network.
        ambiguous = true;
      } else {
        result.rtt = now - record.sent_at;
        // A time-out marks all records in flight, so this one was sent after it.
        result.first_try = true;
      }
    }
    if (record.saved != kNoSaved) core_.shared.saved.release(record.saved);
    const llp::RecordTag tag = record.tag;
    const uint64_t end = record.end();
    const bool fin = record.is(record_flag::kFin);
    board_.pop_front();
    if (!fin) binding().user->released(tag, end);
    if (core_.life.over()) return;
  }
  result.delivered += board_.advance(ack);
  if (ambiguous) result.rtt = base::Duration(-1);
  core_.tcb.snd_una = ack;
  result.acked = ack - una;
}

void Flight::take_sack(const wire::TcpOptions& options, AckResult& result, base::Now now) {
  const uint64_t old_fack = board_.fack();
  const auto una = static_cast<int64_t>(core_.tcb.snd_una);
  for (uint32_t i = 0; i < options.sack_count; ++i) {
    int64_t left = core_.tcb.snd_offset(options.sack[i].left);
    const int64_t right = core_.tcb.snd_offset(options.sack[i].right);
    if (left >= right || right > static_cast<int64_t>(core_.tcb.snd_nxt)) continue;
    if (i == 0) {  // RFC 2883 s.4: a D-SACK lies below the ACK or inside the second block
      const bool nested = options.sack_count > 1 &&
                          left >= core_.tcb.snd_offset(options.sack[1].left) &&
                          right <= core_.tcb.snd_offset(options.sack[1].right);
      if (right <= una || nested) {
        result.dsack = true;
        result.dsack_octets = static_cast<uint64_t>(right - left);
        continue;
      }
    }
    left = std::max(left, una);
    if (left >= right) continue;
    const base::Range block{static_cast<uint64_t>(left), static_cast<uint64_t>(right)};
    board_.sack(block, [&](const Record& record, uint64_t live) {
      result.delivered += live;
      result.new_sack = true;
      // The peer does not echo the timestamp of a segment that arrived out of order.
      rack_.delivered(record, std::nullopt, old_fack, now);
      if (!record.is(record_flag::kResent)) result.rtt = now - record.sent_at;
    });
  }
  if (result.dsack) rack_.dsack();
}

void Flight::measure(AckResult& result, base::Now now) {
  base::Duration rtt = result.rtt;
  const int32_t ticks = result.echo ? ticks_since(*result.echo, now) : -1;
  if (rtt >= base::Duration(0)) {
    rtt = capped_by_echo(rtt, ticks);
    result.rtt = rtt;
  } else {
    // RFC 6298 s.3, s.5: the back-off ends with a measurement, which retransmitted data gives only
    // with timestamps. RFC 8961 s.4 (3): the back-off also ends when data that was sent once, after
    // the time-out, is acknowledged.
    if (result.acked == 0 || rto_.backoff() == 0) return;
    if (result.first_try) rto_.clear_backoff();
    // An echo from before the time-out belongs to an earlier copy. If the ACK of that copy was
    // lost, the sample would include the time-out and make the next RTO longer still.
    if (ticks < 0 || spurious_.before_timeout(*result.echo)) return;
    rtt = ticks != 0 ? base::Duration(std::chrono::milliseconds(ticks))
                     : std::min<base::Duration>(rto_.srtt(), std::chrono::milliseconds(1));
  }
  if (spurious_.take_adaptation(recovery_.point())) {
    rto_.adapt(rtt, now);
  } else {
    rto_.offer(rtt, now);
  }
}

bool Flight::detect_losses(AckResult& result, base::Now now) {
  return core_.tcb.sack_ok ? detect_losses(now)
                           : recovery_.detect_by_duplicates(result, cc_.smss());
}

void Flight::take_ecn_echo(bool ece, AckResult& result, base::Now now) {
  if (result.acked != 0) cc_.count_marks(sample_of(result.acked, result.rtt, now), ece);
  if (!ece) {
    if (result.acked != 0) core_.ecn.end_holds();
    return;
  }
  ++counters().ece_in;
  result.ece = true;
  result.keep_window = true;      // RFC 3168 s.6.1.2: an ACK with ECN-Echo does not grow cwnd
  if (!recovery_.open()) return;  // cwnd was reduced in this window already
  if (core_.ecn.answered(core_.tcb.snd_una)) return;
  const bool one_segment = cc_.cwnd() <= cc_.smss();
  cc_.on_ecn();
  core_.ecn.note_reduction(core_.tcb.snd_nxt);
  core_.ecn.commit_cwr();
  ++counters().ecn_reductions;
  if (!one_segment) {
    core_.ecn.end_holds();
    return;
  }
  // RFC 3168 s.6.1.2: at one segment the window cannot shrink any more. The sending rate is reduced
  // by waiting for the retransmission timer.
  const uint32_t shift = core_.ecn.hold();
  pacing_.hold(now + rto_.rto() * (int64_t{1} << shift));
  ++counters().ecn_holds;
}

void Flight::recover(AckResult& result, bool lost, base::Now now) {
  if (!recovery_.open()) {
    if (result.acked != 0) recovery_.progressed();
    if (recovery_.complete()) {
      // cwnd becomes ssthresh, and this ACK must not add to it.
      if (recovery_.phase() == RecoveryPhase::Recovery) result.keep_window = true;
      leave_recovery();
    }
  }
  if (result.dsack) try_undo(result);
  switch (recovery_.phase()) {
    case RecoveryPhase::Open:
      if (lost) {
        start_recovery(now);
        recovery_.proportional_rate(result.delivered, cc_.smss());
      } else if (result.acked != 0 && !result.keep_window) {
        grow_window(result.acked, result.rtt, now);
      }
      break;
    case RecoveryPhase::Recovery: recovery_.proportional_rate(result.delivered, cc_.smss()); break;
    case RecoveryPhase::TimedOut:
    case RecoveryPhase::Loss:
      if (result.acked != 0 && !result.keep_window) open_window(result.acked, result.rtt, now);
      break;
  }
}

void Flight::start_recovery(base::Now now) {
  // RFC 6675 s.5 step 4, with RFC 6937's rate.
  ++counters().fast_recoveries;
  recovery_.enter();
  spurious_.watch(false, now);
  // RFC 3168 s.6.1.2: drops and marks of one window are one event. DCTCP reduces again, since it
  // responds less to a mark than to a drop (RFC 8257 s.3.5).
  const bool answered =
      core_.ecn.reduced_beyond(core_.tcb.snd_una) && cc_.kind() != CongestionControl::Dctcp;
  if (!answered) cc_.on_loss(core_.tcb.flight());
  core_.ecn.note_reduction(core_.tcb.snd_nxt);
  tail_probe_.recovers();
}

void Flight::leave_recovery() {
  recovery_.leave();
  spurious_.recovered();
  board_.forget_duplicates();
  rack_.recovered();
}

[[gnu::noinline]] void Flight::open_window(uint64_t acked, base::Duration rtt, base::Now now) {
  Counters& counters = core_.shared.counters;
  switch (cc_.on_ack(sample_of(acked, rtt, now))) {
    case SlowStartEvent::None: break;
    case SlowStartEvent::Conservative: ++counters.hystart_css; break;
    case SlowStartEvent::Resumed: ++counters.hystart_resumed; break;
    case SlowStartEvent::Left: ++counters.hystart_exits; break;
  }
}

void Flight::tail_probe_acked(const AckResult& result) {
  if (!tail_probe_.acked(result, recovery_.phase())) return;
  cc_.on_loss(core_.tcb.flight());
  cc_.set_cwnd(cc_.ssthresh());
  core_.ecn.note_reduction(core_.tcb.snd_nxt);
}

void Flight::restart_timers(base::Now now) {
  // RFC 6298 s.5.1-5.3; RFC 8985 s.7.2 for the probe, which never comes later than the RTO.
  if (core_.tcb.flight() == 0) {
    timers_.clear(Timer::Rto);
    tail_probe_.stop();
    rack_.stop();
    return;
  }
  const base::Now rto = now + rto_.rto();
  timers_.set(Timer::Rto, rto);
  tail_probe_.arm(recovery_.phase(), cc_.smss(), now, rto);
}

// This is a function of its own, so that the other ACKs of a burst do not pay for its registers.
[[gnu::noinline]] void Flight::restart_alone(base::Now now) {
  if (core_.tcb.flight() == 0) {
    timers_.clear(Timer::Rto);
    tail_probe_.stop();
    return;
  }
  const base::Now rto = now + rto_.base();
  timers_.set(Timer::Rto, rto);
  tail_probe_.arm_idle(cc_.smss(), now, rto);
}

void Flight::window_opened(base::Now now) {
  // The back-off came from probes of a zero window and says nothing about the path. Data that goes
  // out now must not wait for so long, and a FIN that the window held back must not be given up for
  // it.
  rto_.clear_backoff();
  if (core_.tcb.flight() == 0) return;
  timers_.set(Timer::Rto, base::earlier(timers_.at(Timer::Rto), now + rto_.rto()));
}

[[gnu::noinline, gnu::cold]] void Flight::release_rows(uint32_t count) {
  while (count != 0 && !core_.life.over()) {
    const auto row = static_cast<uint32_t>(board_.row_end() - &board_.front());
    const uint32_t some = std::min(count, row);
    release_row(some);
    count -= some;
  }
}

// --- Spurious retransmissions ---

void Flight::detect_spurious(AckResult& result, bool new_data) {
  using Verdict = SpuriousDetector::Verdict;
  if (recovery_.open()) return;
  const Verdict verdict = spurious_.detect(result, recovery_.point(), board_.fack(), new_data);
  if (verdict == Verdict::None) return;
  Counters& counters = core_.shared.counters;
  ++(verdict == Verdict::Eifel ? counters.eifel_undos : counters.frto_undos);
  undo_recovery(result);
}

void Flight::try_undo(AckResult& result) {
  if (!spurious_.dsack(result.dsack_octets)) return;
  ++counters().dsack_undos;
  undo_recovery(result);
}

void Flight::undo_recovery(AckResult& result) {
  const bool timeout = follows_timeout(recovery_.phase());
  spurious_.undone(timeout, core_.prediction);
  result.keep_window = true;  // RFC 4015 s.3.4
  // RFC 4015 s.3.1 step 9: an ACK with ECN-Echo signals congestion even if the reduction was
  // spurious. If all data was acknowledged before this ACK, the path is empty and takes the burst
  // that a new connection may send.
  const bool all_before = core_.tcb.flight() == 0 && result.acked == 0;
  const uint64_t burst = all_before ? cc_.initial_window() : result.acked;
  if (!result.ece && cc_.undo(core_.tcb.flight(), burst)) {
    core_.ecn.undo();
  }
  if (timeout) ++counters().spurious_timeouts;
  if (recovery_.open()) return;
  // RFC 4015 s.3.1 step 8: sending continues with new data. No record counts as lost until it is
  // found lost again.
  board_.undo_losses();
  // RACK forgets the retransmission, because the ACK was for the original. Otherwise it would count
  // records that were sent between the two as lost.
  rack_.undo();
  recovery_.undo();
  board_.forget_duplicates();
}

// --- Timers ---

void Flight::tail_probe_fired(base::Now now) {
  // The probe takes precedence over a time-out that is due at the same time.
  if (timers_.due(Timer::Rto, now)) timers_.set(Timer::Rto, now + rto_.rto());
  tail_probe_.fired();
}

bool Flight::time_out(base::Now now) {
  const bool repeated = rto_.backoff() != 0 && spurious_.unmoved();
  rto_.back_off();
  spurious_.timed_out(now);
  timers_.set(Timer::Rto, before_give_up(now + rto_.rto(), now));
  if (rto_.backoff() == kNoticeTimeouts) core_.shared.out.doubt_path(binding().remote.address, now);
  return repeated;
}

void Flight::lose_all(bool again, base::Now now) {
  rack_.stop();
  // RFC 5681 s.3.1: ssthresh stays when the timer has retransmitted the same segment before.
  again = again && follows_timeout(recovery_.phase());
  if (recovery_.open()) {
    spurious_.watch(true, now);
  } else if (!again) {
    spurious_.watch_on();
  }
  cc_.on_timeout(core_.tcb.flight(), !again);
  core_.ecn.note_reduction(core_.tcb.snd_nxt);
  recovery_.time_out();
  tail_probe_.timed_out();
  // RFC 2018 s.5: the peer may have reneged. Only SACK blocks that arrive from now on count.
  board_.lose_all();
}

base::Now Flight::before_give_up(base::Now next, base::Now now) const {
  const base::Now end = progress_at_ + binding().options.user_timeout;
  return end > now ? std::min(next, end) : next;
}

// --- Inspection ---

LossState Flight::loss_state() const {
  switch (recovery_.phase()) {
    case RecoveryPhase::Recovery: return LossState::Recovery;
    case RecoveryPhase::TimedOut:
    case RecoveryPhase::Loss: return LossState::Loss;
    case RecoveryPhase::Open: break;
  }
  const bool disorder = board_.sacked_octets() != 0 || board_.duplicate_acks() != 0;
  return disorder ? LossState::Disorder : LossState::Open;
}

/// Walks the records once and counts those that began a segment.
void Flight::count_segments(ConnectionInfo& info) const {
  const uint32_t emss = cc_.smss();
  for (uint64_t n = board_.first(); n < board_.past_last(); ++n) {
    const Record& record = board_.at(n);
    const uint64_t live = board_.live(record);
    if (live == 0) continue;
    const bool starts = record.is(record_flag::kSegmentStart) || n == board_.first();
    const uint64_t pieces = record.length > emss ? (live + emss - 1) / emss : (starts ? 1 : 0);
    const auto count = static_cast<uint32_t>(pieces);
    info.unacked += count;
    if (record.is(record_flag::kSacked)) info.sacked += count;
    if (record.is(record_flag::kLost)) info.lost += count;
    if (record.is(record_flag::kRetransmitted)) info.retransmitted += count;
    if (record.is(record_flag::kResent)) info.total_resent += count;
  }
  if (core_.tcb.sack_ok) return;
  info.sacked = static_cast<uint32_t>((board_.reno_sacked() + emss - 1) / emss);
}

void Flight::describe(ConnectionInfo& info) const {
  const Tcb& tcb = core_.tcb;
  info.loss_state = loss_state();
  info.timestamps = tcb.ts_ok;
  info.sack = tcb.sack_ok;
  info.ecn = core_.ecn.on();
  info.snd_wind_shift = tcb.snd_wind_shift;
  info.cwnd = cc_.cwnd();
  info.ssthresh = cc_.ssthresh();
  info.slow_start = cc_.in_slow_start();
  info.snd_una = tcb.snd_una;
  info.snd_nxt = tcb.snd_nxt;
  info.snd_wnd = tcb.snd_wnd;
  info.pipe = board_.pipe();
  info.resent_segments = resent_segments_;
  count_segments(info);
  info.reorder_degree = kDupThresh;
  info.reordering_seen = rack_.reordering_seen();
  if (rto_.measured()) {
    info.srtt = rto_.srtt();
    info.rttvar = rto_.rttvar();
    info.min_rtt = rto_.min_rtt();
  }
  info.rto = rto_.rto();
  info.rto_backoff = rto_.backoff();
}

void Flight::clear() {
  for (uint64_t n = board_.first(); n != board_.past_last(); ++n) {
    core_.shared.saved.release(board_.at(n).saved);
  }
  board_.clear();
}

void Flight::validate() const {
  rto_.validate();
  board_.validate();
  rack_.validate();
  tail_probe_.validate();
  recovery_.validate();
  spurious_.validate();
  RNIC_CHECK(!recovery_.open() || !spurious_.frto());
  cc_.validate(core_.tcb.snd_nxt);
  pacing_.validate(timers_);
  // Both offsets are of octets that were sent.
  RNIC_CHECK(cwnd_full_to_ <= core_.tcb.snd_nxt && flight_peak_to_ <= core_.tcb.snd_nxt);
}

}  // namespace rnic::tcp

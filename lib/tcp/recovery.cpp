#include "tcp/engine.hpp"

namespace rnic::tcp {

bool Engine::reno_ack(Connection& c, AckYield& yield) {
  // RFC 6582 in the terms of a scoreboard.
  Scoreboard& b = c.board;
  if (yield.acked != 0) {
    const bool partial =
        c.recovery.phase == RecoveryPhase::Recovery && c.tcb.snd_una < c.recovery.point;
    // RFC 6937 s.3: counted as duplicates.
    yield.delivered -=
        std::min(yield.delivered, b.reno_acked(yield.acked, partial, c.effective_mss));
    if (c.recovery.phase == RecoveryPhase::Loss && c.tcb.snd_una < b.lost_again_to()) {
      return front_lost_again(c);
    }
    if (!partial || b.empty() || b.front().is(record_flag::kLost)) return false;
    c.recovery.force_retransmit = true;  // RFC 6582 s.3.2 step 3, whatever pipe says
    b.lose(b.first());
    return true;
  }
  if (!yield.duplicate) return false;
  // RFC 5681 s.3.1: behind a time-out only new ACKs let anything out.
  yield.delivered += b.reno_duplicate(c.recovery.phase != RecoveryPhase::Loss, c.effective_mss);
  if (b.duplicate_acks() != kDupThresh) return false;
  if (c.recovery.phase == RecoveryPhase::Loss) return lost_again(c);
  if (c.recovery.phase != RecoveryPhase::Open) return false;
  // RFC 6582 s.3.2 step 2: the ACK covers more than `recover`; the duplicates may be of what a
  // recovery sent again.
  if (c.recovery.point != 0 && c.tcb.snd_una <= c.recovery.point) return false;
  b.lose_first_segment();
  return true;
}

/// RFC 6582 s.4.1. Duplicates of what a time-out sent again for nothing follow an ACK that covered
/// much, since most had arrived before; where it covered little, a retransmission was lost.
bool Engine::lost_again(Connection& c) {
  const uint64_t smss = c.effective_mss;
  if (c.cc.cwnd() <= smss || c.board.reno_advance() > 4 * smss || c.board.empty()) return false;
  if (!c.board.front().is(record_flag::kRetransmitted)) return false;  // its turn comes anyway
  const uint64_t cwnd = c.cc.cwnd();
  c.cc.on_loss(cwnd);
  c.cc.set_cwnd(std::min<uint64_t>(cwnd, c.cc.ssthresh()));  // that is two segments at least
  c.board.note_lost_again();
  return front_lost_again(c);
}

/// RFC 6582 s.3.2 step 3, behind a time-out, too: a partial ACK tells of the next one that was lost
/// again. Where nothing measures a round trip another time-out would be a minute away.
bool Engine::front_lost_again(Connection& c) {
  if (c.board.empty() || !c.board.front().is(record_flag::kRetransmitted)) return false;
  c.recovery.force_retransmit = true;
  c.board.lose(c.board.first());
  return true;
}

void Engine::recover(Connection& c, AckYield& yield, bool lost, base::Now now) {
  Recovery& r = c.recovery;
  if (yield.acked != 0) r.alone = false;
  if (r.phase != RecoveryPhase::Open && c.tcb.snd_una >= r.point) {
    // RFC 6582 s.3.2, RFC 6937 s.3: cwnd is ssthresh, and this ACK does not add to it.
    if (r.phase == RecoveryPhase::Recovery) yield.keep_window = true;
    leave_recovery(c);
  }
  if (yield.dsack) try_undo(c, yield);
  switch (r.phase) {
    case RecoveryPhase::Open:
      if (lost) {
        enter_recovery(c, now);
        proportional_rate(c, yield);
      } else if (yield.acked != 0 && !yield.keep_window) {
        grow_window(c, yield.acked, yield.rtt, now);
      }
      break;
    case RecoveryPhase::Recovery: proportional_rate(c, yield); break;
    case RecoveryPhase::Loss:
      if (yield.acked != 0 && !yield.keep_window) open_window(c, yield.acked, yield.rtt, now);
      break;
  }
  if (lost) make_ready(c);
}

void Engine::enter_recovery(Connection& c, base::Now now) {
  // RFC 6675 s.5 step 4, with RFC 6937's rate.
  Recovery& r = c.recovery;
  ++counters_.fast_recoveries;
  r.phase = RecoveryPhase::Recovery;
  r.point = c.tcb.snd_nxt;
  watch_for_spurious(c, false, now);
  r.prr_delivered = 0;
  r.prr_out = 0;
  r.recover_fs = std::max<uint64_t>(c.tcb.flight(), 1);
  r.force_retransmit = true;
  // RFC 3168 s.6.1.2: drops and marks of one window are one event. To DCTCP a mark says less than a
  // drop (RFC 8257 s.3.5).
  const bool answered = c.ecn.reduced && c.tcb.snd_una < c.ecn.reduced_until &&
                        c.cc.kind() != CongestionControl::Dctcp;
  if (!answered) c.cc.on_loss(c.tcb.flight());
  note_reduction(c);
  c.tail_probe.recovers();
}

void Engine::leave_recovery(Connection& c) {
  Recovery& r = c.recovery;
  if (r.phase == RecoveryPhase::Recovery) c.cc.set_cwnd(c.cc.ssthresh());
  r.phase = RecoveryPhase::Open;
  r.frto = Frto::Off;
  r.force_retransmit = r.alone = false;
  c.board.forget_duplicates();
  c.rack.recovered();
}

void Engine::proportional_rate(Connection& c, const AckYield& yield) {
  // RFC 6937 s.3, with the slow start reduction bound.
  Recovery& r = c.recovery;
  const uint64_t smss = c.effective_mss;
  const uint64_t ssthresh = c.cc.ssthresh();
  const uint64_t pipe = c.board.pipe();
  r.prr_delivered += yield.delivered;
  uint64_t sndcnt = 0;
  if (pipe > ssthresh) {
    const uint64_t due = (r.prr_delivered * ssthresh + r.recover_fs - 1) / r.recover_fs;
    sndcnt = due > r.prr_out ? due - r.prr_out : 0;
  } else {
    const uint64_t owed = r.prr_delivered > r.prr_out ? r.prr_delivered - r.prr_out : 0;
    sndcnt = std::min(ssthresh - pipe, std::max(owed, yield.delivered) + smss);
  }
  if (r.force_retransmit) sndcnt = std::max(sndcnt, smss);
  c.cc.set_cwnd(pipe + sndcnt);
}

void Engine::open_window(Connection& c, uint64_t acked, base::Duration rtt, base::Now now) {
  switch (c.cc.on_ack(sample_of(c, acked, rtt, now))) {
    case SlowStartEvent::None: break;
    case SlowStartEvent::Conservative: ++counters_.hystart_css; break;
    case SlowStartEvent::Resumed: ++counters_.hystart_resumed; break;
    case SlowStartEvent::Left: ++counters_.hystart_exits; break;
  }
}

void Engine::restart_after_idle(Connection& c) {
  if (!config_.idle_restart) return;
  c.cc.on_idle(c.progress_at);
  ++counters_.idle_restarts;
}

void Engine::tail_probe_acked(Connection& c, const AckYield& yield) {
  if (!c.tail_probe.acked(yield, c.recovery.phase)) return;
  c.cc.on_loss(c.tcb.flight());
  c.cc.set_cwnd(c.cc.ssthresh());
  note_reduction(c);
}

void Engine::retransmission_timeout(Connection& c, base::Now now) {
  // RFC 6298 s.5.4-5.7, RFC 5681 s.3.1 (4).
  ++counters_.timeouts;
  if (now - c.progress_at >= c.options.user_timeout) {  // R2
    give_up(c);
    return;
  }
  Recovery& r = c.recovery;
  const bool repeated = c.rto.backoff() != 0 && c.tcb.snd_una == r.undo_marker;
  c.rto.back_off();
  r.timeout_ts = c.tcb.timestamp(now);
  c.timers.set(Timer::Rto, before_give_up(c, now + c.rto.rto(), now));
  if (c.rto.backoff() == kNoticeTimeouts) {
    ++counters_.path_doubts;
    egress_.doubt_path(c.remote_end.address, now);
  }
  if (c.path.pending_mtu != 0) take_pending_mtu(c, now);
  suspect_black_hole(c, now);
  if (c.doomed) return;
  c.timers.clear(Timer::Probe);
  c.timers.clear(Timer::Reorder);
  if (base::sabotaged(base::Defect::DropWithoutRetransmit)) return;
  // RFC 5681 s.3.1: ssthresh is held when the segment was sent again by the timer before. A
  // recovery that was under way keeps its own way back, and rules F-RTO out (RFC 5682 s.3.1).
  const bool again = r.phase == RecoveryPhase::Loss && repeated;
  if (r.phase == RecoveryPhase::Open) {
    watch_for_spurious(c, true, now);
  } else if (!again) {
    r.eifel_armed = false;
    r.frto = Frto::Off;
    r.undo_marker = c.tcb.snd_una;
  }
  c.cc.on_timeout(c.tcb.flight(), !again);
  note_reduction(c);
  r.phase = RecoveryPhase::Loss;
  r.point = c.tcb.snd_nxt;
  r.force_retransmit = r.alone = true;  // RFC 6298 s.5.4: the earliest segment, not several
  c.tail_probe.timed_out();
  // RFC 2018 s.5: the peer may have reneged; what it says from now on is believed again.
  c.board.lose_all();
  c.piece_next = 0;
  unpredict(c);
  make_ready(c);
}

void Engine::restart_timers(Connection& c, base::Now now) {
  // RFC 6298 s.5.1-5.3; RFC 8985 s.7.2 for the probe, which never comes later than the RTO.
  if (c.tcb.flight() == 0) {
    c.timers.clear(Timer::Rto);
    c.timers.clear(Timer::Probe);
    c.timers.clear(Timer::Reorder);
    return;
  }
  const base::Now rto = now + c.rto.rto();
  c.timers.set(Timer::Rto, rto);
  c.tail_probe.arm(c.recovery.phase, c.effective_mss, now, rto);
}

}  // namespace rnic::tcp

#include "tcp/engine.hpp"

namespace rnic::tcp {

namespace flag = wire::tcp_flag;

void Engine::process_ack(Connection& c, const Arrival& a, base::Now now) {
  const int64_t ack = c.tcb.snd_offset(a.ack);
  const auto una = static_cast<int64_t>(c.tcb.snd_una);
  const bool outstanding = c.tcb.flight() != 0;
  AckYield yield;
  if (c.tcb.ts_ok && a.options.timestamps) yield.echo = a.options.timestamps->echo;
  if (ack > una) advance_una(c, static_cast<uint64_t>(ack), yield, now);
  if (c.doomed) return;
  if (a.options.sack_count != 0 && c.tcb.sack_ok) take_sack(c, a, c.tcb.snd_una, yield, now);
  const uint32_t old_window = c.tcb.snd_wnd;
  update_window(c, a, ack, ack > una, now);
  // RFC 5681 s.2: the five marks of a duplicate ACK.
  const bool repeats =
      ack == una && a.payload.empty() && !a.has(flag::kFin) && c.tcb.snd_wnd == old_window;
  yield.duplicate = outstanding && repeats;
  if (!outstanding) {
    // What the last flight was sent again for is told when all of it is acknowledged (RFC 3708
    // s.3).
    yield.ece = c.ecn.on() && a.has(flag::kEce);
    if (yield.dsack) try_undo(c, yield);
    yield.duplicate = repeats;
    tail_probe_acked(c, yield);
    return;
  }
  measure(c, yield, now);
  if (yield.acked != 0 || c.tcb.snd_wnd == 0) c.progress_at = now;  // answered probes keep it alive
  if (yield.acked != 0) {
    c.orphan_until = base::kNever;
    push_life(c, now);
  }
  if (c.ecn.on()) ecn_feedback(c, a, yield, now);
  if (!c.recovery.open()) detect_spurious(c, yield);
  settle(c, yield, now);
}

void Engine::settle(Connection& c, AckYield& yield, base::Now now) {
  bool lost = c.tcb.sack_ok ? detect_losses(c, now)
                            : c.recovery.detect_by_duplicates(yield, c.effective_mss);
  if (c.path.probing()) [[unlikely]] {
    probe_acked(c, now);
    if (lost && c.path.probing()) lost = lost_beside_probe(c, now);
  }
  recover(c, yield, lost, now);
  tail_probe_acked(c, yield);
  if (yield.acked != 0) restart_timers(c, now);
  c.tcb.validate();
  if (c.fin_queued && c.board.empty()) our_fin_acked(c, now);
  if (c.user_ready || c.fin_wanted || c.board.has_waiting() || c.board.lost_octets() != 0)
    make_ready(c);
}

void Engine::measure(Connection& c, AckYield& yield, base::Now now) {
  base::Duration rtt = yield.rtt;
  const auto ticks = yield.echo ? static_cast<int32_t>(c.tcb.timestamp(now) - *yield.echo) : -1;
  if (rtt >= base::Duration(0)) {
    // RFC 7323 s.4.1: the echoed timestamp is coarse, but it belongs to the segment that made the
    // peer answer; an octet that waited behind a hole, or whose ACKs were lost, would measure that
    // instead.
    if (ticks >= 0) {
      rtt = std::min<base::Duration>(rtt, std::chrono::milliseconds(int64_t{ticks} + 1));
    }
    yield.rtt = rtt;
  } else {
    // RFC 6298 s.3, s.5: the back-off ends with a measurement, and what was sent again gives none
    // but by its timestamp. RFC 8961 s.4 (3): or with octets that went over at the first try since.
    if (yield.acked == 0 || c.rto.backoff() == 0) return;
    if (yield.first_try) c.rto.clear_backoff();
    // An echo from before the time-out says how long the ACK of another copy was away: when it got
    // lost, as long as the time-out took. Such a round trip would make the next one longer still.
    if (ticks < 0 || c.spurious.before_timeout(*yield.echo)) return;
    rtt = ticks != 0 ? base::Duration(std::chrono::milliseconds(ticks))
                     : std::min<base::Duration>(c.rto.srtt(), std::chrono::milliseconds(1));
  }
  if (c.spurious.take_adaptation(c.recovery.point())) {
    c.rto.adapt(rtt, now);
  } else {
    c.rto.offer(rtt, now);
  }
}

void Engine::advance_una(Connection& c, uint64_t ack, AckYield& yield, base::Now now) {
  const uint64_t una = c.tcb.snd_una;
  bool ambiguous = false;
  while (!c.board.empty() && c.board.front().end() <= ack) {
    const Record& r = c.board.front();
    if (!r.is(record_flag::kSacked)) {
      yield.delivered += c.board.live(r);
      c.rack.delivered(r, yield.echo, c.board.fack(), now);
      if (r.is(record_flag::kResent)) {
        // Karn, and more: what lay behind this hole waited for it, not for the network.
        ambiguous = true;
      } else {
        yield.rtt = now - r.sent_at;
        yield.first_try = true;  // a time-out marks all that is in flight
      }
    }
    if (r.saved != kNoSaved) saved_.release(r.saved);
    const llp::RecordTag tag = r.tag;
    const uint64_t end = r.end();
    const bool fin = r.is(record_flag::kFin);
    c.board.pop_front();
    if (!fin) c.user->released(tag, end);
    if (c.doomed) return;
  }
  yield.delivered += c.board.advance(ack);
  if (ambiguous) yield.rtt = base::Duration(-1);
  c.tcb.snd_una = ack;
  yield.acked = ack - una;
}

void Engine::take_sack(Connection& c, const Arrival& a, uint64_t ack, AckYield& yield,
                       base::Now now) {
  const uint64_t old_fack = c.board.fack();
  const auto una = static_cast<int64_t>(ack);
  for (uint32_t i = 0; i < a.options.sack_count; ++i) {
    int64_t left = c.tcb.snd_offset(a.options.sack[i].left);
    const int64_t right = c.tcb.snd_offset(a.options.sack[i].right);
    if (left >= right || right > static_cast<int64_t>(c.tcb.snd_nxt)) continue;
    if (i == 0) {  // RFC 2883 s.4: below the ACK, or inside the second block
      const bool nested = a.options.sack_count > 1 &&
                          left >= c.tcb.snd_offset(a.options.sack[1].left) &&
                          right <= c.tcb.snd_offset(a.options.sack[1].right);
      if (right <= una || nested) {
        yield.dsack = true;
        yield.dsack_octets = static_cast<uint64_t>(right - left);
        continue;
      }
    }
    left = std::max(left, una);
    if (left >= right) continue;
    const base::Range block{static_cast<uint64_t>(left), static_cast<uint64_t>(right)};
    c.board.sack(block, [&](const Record& r, uint64_t live) {
      yield.delivered += live;
      yield.new_sack = true;
      // What arrived ahead of order does not set the timestamp that the peer echoes.
      c.rack.delivered(r, std::nullopt, old_fack, now);
      if (!r.is(record_flag::kResent)) yield.rtt = now - r.sent_at;
    });
  }
  if (yield.dsack) c.rack.dsack();
}

void Engine::update_window(Connection& c, const Arrival& a, int64_t ack, bool advanced,
                           base::Now now) {
  // RFC 9293 s.3.10.7.4, fifth: an old segment does not change the window. One that has just moved
  // SND.UNA is not old, wherever its text lies: SND.WND counts from SND.UNA, and the old one would
  // reach beyond what the peer has ever offered.
  const int64_t seq = c.tcb.rcv_offset(a.seq);
  if (ack < static_cast<int64_t>(c.tcb.snd_una)) return;
  const bool old = c.tcb.snd_wl1 > seq || (c.tcb.snd_wl1 == seq && c.tcb.snd_wl2 > ack);
  if (old && !advanced) return;
  const bool was_shut = c.tcb.snd_wnd == 0;
  c.tcb.snd_wnd = static_cast<uint32_t>(a.window) << c.tcb.snd_wind_shift;
  if (was_shut && c.tcb.snd_wnd != 0) [[unlikely]]
    window_opened(c, now);
  c.tcb.snd_max_wnd = std::max(c.tcb.snd_max_wnd, c.tcb.snd_wnd);
  c.tcb.snd_wl1 = seq;
  c.tcb.snd_wl2 = ack;
  if (c.timers.runs(Timer::Persist)) {
    c.progress_at = now;  // s.3.8.6.1: as long as probes are answered the connection stays
    c.unanswered_probes = 0;
    const bool reopened = c.tcb.snd_wnd != 0 && c.persist_backoff != 0;
    if (reopened || c.tcb.usable_window() >= c.effective_mss) {
      c.timers.clear(Timer::Persist);  // the silly-window override starts anew
    }
    if (c.tcb.snd_wnd != 0) c.persist_backoff = 0;
  }
  if (c.user_ready || c.board.has_waiting()) make_ready(c);
}

void Engine::window_opened(Connection& c, base::Now now) {
  // What backed off was asked of a shut window, not of a full path: what goes out from here on must
  // not wait for that long, nor a FIN that could not get in be given up for it.
  c.rto.clear_backoff();
  if (c.tcb.flight() != 0)
    c.timers.set(Timer::Rto, base::earlier(c.timers.at(Timer::Rto), now + c.rto.rto()));
  push_life(c, now);
}

void Engine::our_fin_acked(Connection& c, base::Now now) {
  switch (c.state) {
    case State::FinWait1:
      c.state = State::FinWait2;
      push_life(c, now);
      break;
    case State::Closing: enter_time_wait(c, now); break;
    case State::LastAck: doom(c, StreamEnd::Closed, false); break;
    default: break;
  }
}

void Engine::recover(Connection& c, AckYield& yield, bool lost, base::Now now) {
  Recovery& r = c.recovery;
  if (yield.acked != 0) r.progressed();
  if (r.complete()) {
    // cwnd is ssthresh, and this ACK does not add to it.
    if (r.phase() == RecoveryPhase::Recovery) yield.keep_window = true;
    leave_recovery(c);
  }
  if (yield.dsack) try_undo(c, yield);
  switch (r.phase()) {
    case RecoveryPhase::Open:
      if (lost) {
        enter_recovery(c, now);
        r.proportional_rate(yield.delivered, c.effective_mss);
      } else if (yield.acked != 0 && !yield.keep_window) {
        grow_window(c, yield.acked, yield.rtt, now);
      }
      break;
    case RecoveryPhase::Recovery: r.proportional_rate(yield.delivered, c.effective_mss); break;
    case RecoveryPhase::Loss:
      if (yield.acked != 0 && !yield.keep_window) open_window(c, yield.acked, yield.rtt, now);
      break;
  }
  if (lost) make_ready(c);
}

void Engine::enter_recovery(Connection& c, base::Now now) {
  // RFC 6675 s.5 step 4, with RFC 6937's rate.
  ++counters_.fast_recoveries;
  c.recovery.enter();
  c.spurious.watch(false, now);
  // RFC 3168 s.6.1.2: drops and marks of one window are one event. To DCTCP a mark says less than a
  // drop (RFC 8257 s.3.5).
  const bool answered =
      c.ecn.reduced_beyond(c.tcb.snd_una) && c.cc.kind() != CongestionControl::Dctcp;
  if (!answered) c.cc.on_loss(c.tcb.flight());
  c.ecn.note_reduction(c.tcb.snd_nxt);
  c.tail_probe.recovers();
}

void Engine::leave_recovery(Connection& c) {
  c.recovery.leave();
  c.spurious.recovered();
  c.board.forget_duplicates();
  c.rack.recovered();
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
  if (!c.tail_probe.acked(yield, c.recovery.phase())) return;
  c.cc.on_loss(c.tcb.flight());
  c.cc.set_cwnd(c.cc.ssthresh());
  c.ecn.note_reduction(c.tcb.snd_nxt);
}

void Engine::retransmission_timeout(Connection& c, base::Now now) {
  // RFC 6298 s.5.4-5.7, RFC 5681 s.3.1 (4).
  ++counters_.timeouts;
  if (now - c.progress_at >= c.options.user_timeout) {  // R2
    give_up(c);
    return;
  }
  const bool repeated = c.rto.backoff() != 0 && c.spurious.unmoved();
  c.rto.back_off();
  c.spurious.timed_out(now);
  c.timers.set(Timer::Rto, before_give_up(c, now + c.rto.rto(), now));
  if (c.rto.backoff() == kNoticeTimeouts) {
    ++counters_.path_doubts;
    egress_.doubt_path(c.remote_end.address, now);
  }
  if (const auto mtu = c.path.take_unverified(packet_octets(c))) lower_path_mtu(c, *mtu, now);
  suspect_black_hole(c, now);
  if (c.doomed) return;
  c.timers.clear(Timer::Probe);
  c.timers.clear(Timer::Reorder);
  // RFC 5681 s.3.1: ssthresh is held when the segment was sent again by the timer before.
  const bool again = c.recovery.phase() == RecoveryPhase::Loss && repeated;
  if (c.recovery.open()) {
    c.spurious.watch(true, now);
  } else if (!again) {
    c.spurious.watch_on();
  }
  c.cc.on_timeout(c.tcb.flight(), !again);
  c.ecn.note_reduction(c.tcb.snd_nxt);
  c.recovery.time_out();
  c.tail_probe.timed_out();
  // RFC 2018 s.5: the peer may have reneged; what it says from now on is believed again.
  c.board.lose_all();
  c.piece_next = 0;
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
  c.tail_probe.arm(c.recovery.phase(), c.effective_mss, now, rto);
}

void Engine::detect_spurious(Connection& c, AckYield& yield) {
  using Verdict = SpuriousDetector::Verdict;
  const bool more = c.user_ready || c.board.has_waiting() || (c.fin_wanted && !c.fin_queued);
  const bool new_data = more && c.tcb.usable_window() >= c.effective_mss;
  const Verdict verdict = c.spurious.detect(yield, c.recovery.point(), c.board.fack(), new_data);
  if (verdict == Verdict::None) return;
  ++(verdict == Verdict::Eifel ? counters_.eifel_undos : counters_.frto_undos);
  undo_recovery(c, yield);
}

void Engine::try_undo(Connection& c, AckYield& yield) {
  if (!c.spurious.dsack(yield.dsack_octets)) return;
  ++counters_.dsack_undos;
  undo_recovery(c, yield);
}

void Engine::undo_recovery(Connection& c, AckYield& yield) {
  const bool timeout = c.recovery.phase() == RecoveryPhase::Loss;
  c.spurious.undone(timeout);
  yield.keep_window = true;  // RFC 4015 s.3.4
  // Step 9: an ACK with ECN-Echo tells of congestion all the same. When all was acknowledged
  // before, the path is empty: it takes the burst that a new connection may send.
  const bool all_before = c.tcb.flight() == 0 && yield.acked == 0;
  const uint64_t burst = all_before ? c.cc.initial_window() : yield.acked;
  if (!yield.ece && c.cc.undo(c.tcb.flight(), burst)) {
    c.ecn.undo();
  }
  if (timeout) ++counters_.spurious_timeouts;
  if (c.recovery.open()) return;
  // Step 8: go on with new data. Nothing counts as lost until the scoreboard says so again.
  c.board.undo_losses();
  // Nor does RACK hold what was sent before the retransmission against it: that one did not arrive.
  c.rack.undo();
  c.recovery.undo();
  c.board.forget_duplicates();
}

}  // namespace rnic::tcp

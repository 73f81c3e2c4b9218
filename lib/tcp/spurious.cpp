#include "tcp/engine.hpp"

namespace rnic::tcp {

// Retransmissions that were for nothing: found by F-RTO (RFC 5682), by timestamps (Eifel, RFC 3522
// and RFC 4015) or by D-SACK (RFC 2883), and undone.

void Engine::watch_for_spurious(Connection& c, bool timeout, base::Now now) {
  // RFC 4015 s.3.1 step 0; RFC 5682 s.3.1 step 1.
  Recovery& r = c.recovery;
  c.cc.save(c.tcb.flight());
  c.rto.save();
  r.may_undo = true;
  r.undo_marker = c.tcb.snd_una;
  r.undo_octets = 0;
  r.retransmit_ts = c.tcb.timestamp(now);
  r.eifel_armed = c.tcb.ts_ok;
  r.frto = timeout && config_.frto ? Frto::AwaitAck : Frto::Off;
}

void Engine::detect_spurious(Connection& c, AckYield& yield) {
  Recovery& r = c.recovery;
  if (yield.acked != 0 && r.eifel_armed) {
    // RFC 3522 s.3.2 steps 4 and 5: the first new ACK echoes a time before the retransmission.
    r.eifel_armed = false;
    if (yield.echo && r.may_undo && static_cast<int32_t>(*yield.echo - r.retransmit_ts) < 0) {
      ++counters_.eifel_undos;
      undo_recovery(c, yield);
      return;
    }
  }
  const uint64_t smss = c.cc.smss();
  if (r.frto == Frto::AwaitAck) {  // RFC 5682 s.3.1 step 2
    if (yield.acked == 0) {
      if (!c.tcb.sack_ok && yield.duplicate) r.frto = Frto::Off;  // s.2.1 step 2a
      return;
    }
    const bool more = c.user_ready || c.board.has_waiting() || (c.fin_wanted && !c.fin_queued);
    const bool forward =
        c.tcb.snd_una < r.point && more && c.tcb.usable_window() >= c.effective_mss;
    r.frto = forward ? Frto::NewData : Frto::Off;
    r.frto_new = 2;
    c.cc.set_cwnd(2 * smss);
    yield.keep_window = true;
    return;
  }
  if (r.frto != Frto::NewData) return;
  // Step 3: only what was sent before the time-out, and never again, tells that it was spurious.
  if (yield.acked == 0 && !yield.duplicate && !yield.new_sack) return;
  const bool beyond = std::max(c.tcb.snd_una, c.board.fack()) > r.point;
  if (!beyond && (yield.acked != 0 || yield.new_sack) && r.may_undo) {
    ++counters_.frto_undos;
    undo_recovery(c, yield);
    return;
  }
  r.frto = Frto::Off;
  // Without SACK the duplicate makes no room by itself: cwnd was two segments, and both are out.
  c.cc.set_cwnd(c.tcb.sack_ok ? std::min<uint64_t>(c.cc.cwnd(), 3 * smss) : 3 * smss);
  yield.keep_window = true;
}

Engine::Sent Engine::send_during_frto(Connection& c, base::Now now) {
  // Nothing but the first segment until its ACK (step 2), then up to two segments of new data.
  Recovery& r = c.recovery;
  if (r.frto_new == 0) return Sent::Nothing;
  const Sent sent = send_new(c, now);
  if (sent == Sent::Yes) --r.frto_new;
  if (sent != Sent::Nothing || c.doomed || c.tcb.snd_nxt != r.point) return sent;
  r.frto = Frto::Off;  // there was none: the conventional recovery goes on
  return send_lost(c, now);
}

void Engine::try_undo(Connection& c, AckYield& yield) {
  // Every retransmission arrived as a duplicate: nothing was lost.
  Recovery& r = c.recovery;
  if (!r.may_undo || r.undo_octets <= 0) return;
  r.undo_octets -= static_cast<int64_t>(yield.dsack_octets);
  if (r.undo_octets > 0) return;
  ++counters_.dsack_undos;
  undo_recovery(c, yield);
}

void Engine::undo_recovery(Connection& c, AckYield& yield) {
  Recovery& r = c.recovery;
  r.may_undo = false;
  r.eifel_armed = false;
  r.frto = Frto::Off;
  yield.keep_window = true;  // RFC 4015 s.3.4
  // Step 9: an ACK with ECN-Echo tells of congestion all the same. When all was acknowledged
  // before, the path is empty: it takes the burst that a new connection may send.
  const bool all_before = c.tcb.flight() == 0 && yield.acked == 0;
  const uint64_t burst = all_before ? c.cc.initial_window() : yield.acked;
  if (!yield.ece && c.cc.undo(c.tcb.flight(), burst)) {
    c.ecn.cwr_due = false;
    c.ecn.reduced = false;
  }
  if (r.phase == RecoveryPhase::Loss) {
    ++counters_.spurious_timeouts;
    r.adapt_rto = true;
  }
  if (r.phase == RecoveryPhase::Open) return;
  // Step 8: go on with new data. Nothing counts as lost until the scoreboard says so again.
  c.board.undo_losses();
  // Nor does RACK hold what was sent before the retransmission against it: that one did not arrive.
  c.rack.undo();
  r.phase = RecoveryPhase::Open;
  r.force_retransmit = r.alone = false;
  c.board.forget_duplicates();
}

}  // namespace rnic::tcp

#include "tcp/engine.hpp"

namespace rnic::tcp {

void Engine::on_timers(base::Now now) {
  wheel_.expire(now, [this, now](base::TimerNode& node) {
    if (node.owner == nullptr) {
      time_wait_.expire(now);
      arm_time_wait(now);
      return;
    }
    Connection& c = *static_cast<Connection*>(node.owner);
    fire(c, now);
    if (!c.doomed) schedule(c);
  });
  if (!doomed_.empty()) reap(now);
}

void Engine::fire(Connection& c, base::Now now) {
  // The node is armed at or before the earliest deadline; each is looked at again here.
  Deadlines& d = c.deadlines;
  if (c.doomed) return;
  unpredict(c);
  if (c.fin_wanted && orphan_over(c, now)) return;
  if (d.life <= now) {
    life_over(c, now);
    if (c.doomed) return;
  }
  if (d.delayed_ack <= now) {
    d.delayed_ack = base::kNever;
    c.ack.now = true;
    make_ready(c);
  }
  if (d.probe <= now) tail_probe_fired(c, now);
  if (d.rto <= now) {
    if (in_any(c.state, State::SynSent, State::SynReceived)) {
      syn_timeout(c, now);
    } else {
      retransmission_timeout(c, now);
    }
    if (c.doomed) return;
  }
  if (d.reorder <= now) {
    AckYield none;
    bool lost = rack_detect(c, now);
    if (lost && c.path.probe_end != 0) lost = lost_beside_probe(c, now);
    if (lost) recover(c, none, true, now);
  }
  if (d.pacing <= now) {
    d.pacing = base::kNever;
    make_ready(c);
  }
  if (d.persist <= now) {
    if (c.tcb.usable_window() == 0) {
      // One probe may get lost, and the time between two may be longer than the time-out.
      if (c.unanswered_probes >= 2 && now - c.progress_at >= c.options.user_timeout) {
        give_up(c);
        return;
      }
      c.window_probe_due = true;
      ++c.persist_backoff;
      c.rto.back_off();
      d.persist = now + c.rto.rto();
      if (c.unanswered_probes != 0) d.persist = before_give_up(c, d.persist, now);
    } else {
      c.sws_override = true;
      d.persist = base::kNever;
    }
    make_ready(c);
  }
}

base::Now Engine::before_give_up(const Connection& c, base::Now next, base::Now now) {
  const base::Now end = c.progress_at + c.options.user_timeout;
  return end > now ? std::min(next, end) : next;
}

void Engine::give_up(Connection& c) {
  // R2 (RFC 9293 s.3.8.3). The USER TIMEOUT event of s.3.10.8 deletes the connection without a word
  // to the peer, which has not answered for long; what it sends later draws a RST.
  ++counters_.connections_timed_out;
  doom(c, StreamEnd::TimedOut, false);
}

bool Engine::orphan_over(Connection& c, base::Now now) {
  // A peer that answers probes keeps a connection for ever (RFC 9293 s.3.8.6.1, MUST-37), but who
  // has closed it waits for nothing (RFC 6429 s.5): what nobody reads must not hold memory without
  // end. Some timer runs as long as something is unacknowledged or held back.
  if (c.options.half_close || config_.orphan_timeout == base::Duration(0)) return false;
  if (c.state == State::FinWait2) return false;  // all is acknowledged: tcp.close_timeout's turn
  if (c.orphan_until == base::kNever) c.orphan_until = now + config_.orphan_timeout;
  if (now < c.orphan_until) return false;
  ++counters_.orphans_aborted;
  doom(c, StreamEnd::TimedOut, synchronized(c.state));
  return true;
}

void Engine::tail_probe_fired(Connection& c, base::Now now) {
  c.deadlines.probe = base::kNever;
  if (c.deadlines.rto <= now) c.deadlines.rto = now + c.rto.rto();
  c.recovery.tlp_due = true;
  make_ready(c);
}

void Engine::life_over(Connection& c, base::Now now) {
  c.deadlines.life = base::kNever;
  if (in_any(c.state, State::Established, State::CloseWait)) {
    if (c.options.keep_alive) keep_alive_due(c, now);
    return;
  }
  // Data before the FIN is still going out, or the peer's window is shut before it (MUST-37): R2
  // watches over that.
  if (in_any(c.state, State::LastAck, State::FinWait1, State::Closing) &&
      (c.records.size() > 1 || c.tcb.snd_wnd == 0)) {
    push_life(c, now);
    return;
  }
  ++counters_.connections_timed_out;
  const bool unreachable = c.soft_error && c.state == State::SynSent;
  doom(c, unreachable ? StreamEnd::Unreachable : StreamEnd::TimedOut, synchronized(c.state));
}

}  // namespace rnic::tcp

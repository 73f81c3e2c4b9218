#include "tcp/engine.hpp"

namespace rnic::tcp {

namespace flag = wire::tcp_flag;

void Engine::arm_keep_alive(Connection& c, base::Now now) {
  if (!in_any(c.state, State::Established, State::CloseWait) || c.fin_queued) return;
  c.keep_alive_probes = 0;
  if (c.options.keep_alive) {
    c.timers.set(Timer::Life, std::max(now, c.heard_at + c.options.keep_alive_idle));
  } else {
    c.timers.clear(Timer::Life);
  }
}

void Engine::keep_alive_due(Connection& c, base::Now now) {
  // RFC 9293 s.3.8.4. Octets in flight and window probes have timers of their own.
  const ConnectionOptions& o = c.options;
  const base::Now idle_at = c.heard_at + o.keep_alive_idle;
  if (now < idle_at || c.tcb.flight() != 0 || c.timers.runs(Timer::Persist)) {
    c.keep_alive_probes = 0;
    c.timers.set(Timer::Life, std::max(idle_at, now + o.keep_alive_interval));
    return;
  }
  if (c.keep_alive_probes >= o.keep_alive_count) {
    ++counters_.keep_alive_timeouts;
    ++counters_.connections_timed_out;
    doom(c, StreamEnd::TimedOut, true);
    return;
  }
  ++c.keep_alive_probes;
  c.keep_alive_probe_due = true;
  c.timers.set(Timer::Life, now + o.keep_alive_interval);
  make_ready(c);
}

bool Engine::send_keep_alive(Connection& c, base::Now now) {
  c.keep_alive_probe_due = false;
  if (c.tcb.flight() != 0) return true;
  TxSlot slot;
  if (!begin(c, slot)) {
    c.keep_alive_probe_due = true;
    return false;
  }
  // SEG.SEQ = SND.NXT - 1: the peer must answer what lies before its window. No octet (SHLD-12).
  finish(c, slot, c.tcb.snd_nxt - 1, 0, flag::kAck, now);
  ++counters_.keep_alive_probes;
  return true;
}

}  // namespace rnic::tcp

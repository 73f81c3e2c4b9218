#include "tcp/keep_alive.hpp"

#include <algorithm>

#include "tcp/engine.hpp"

namespace rnic::tcp {

namespace flag = wire::tcp_flag;

void KeepAlive::arm(const ConnectionOptions& options, Timers& timers, base::Now now) {
  probes_ = 0;
  if (options.keep_alive) {
    timers.set(Timer::Life, std::max(now, heard_at_ + options.keep_alive_idle));
  } else {
    timers.clear(Timer::Life);
  }
}

KeepAlive::Verdict KeepAlive::due(const ConnectionOptions& options, Timers& timers, bool watched,
                                  base::Now now) {
  const base::Now idle_at = heard_at_ + options.keep_alive_idle;
  if (now < idle_at || watched) {
    probes_ = 0;
    timers.set(Timer::Life, std::max(idle_at, now + options.keep_alive_interval));
    return Verdict::Wait;
  }
  if (probes_ >= options.keep_alive_count) return Verdict::Dead;
  ++probes_;
  probe_due_ = true;
  timers.set(Timer::Life, now + options.keep_alive_interval);
  return Verdict::Probe;
}

void Engine::arm_keep_alive(Connection& c, base::Now now) {
  if (!in_any(c.state, State::Established, State::CloseWait) || c.fin_queued) return;
  c.keep_alive.arm(c.options, c.timers, now);
}

void Engine::keep_alive_due(Connection& c, base::Now now) {
  // Octets in flight and window probes have timers of their own.
  const bool watched = c.tcb.flight() != 0 || c.timers.runs(Timer::Persist);
  switch (c.keep_alive.due(c.options, c.timers, watched, now)) {
    case KeepAlive::Verdict::Wait: break;
    case KeepAlive::Verdict::Probe: make_ready(c); break;
    case KeepAlive::Verdict::Dead:
      ++counters_.keep_alive_timeouts;
      ++counters_.connections_timed_out;
      doom(c, StreamEnd::TimedOut, true);
      break;
  }
}

bool Engine::send_keep_alive(Connection& c, base::Now now) {
  if (c.tcb.flight() != 0) {
    c.keep_alive.probe_done();
    return true;
  }
  TxSlot slot;
  if (!begin(c, slot)) return false;
  c.keep_alive.probe_done();
  // SEG.SEQ = SND.NXT - 1: the peer must answer what lies before its window. No octet (SHLD-12).
  finish(c, slot, c.tcb.snd_nxt - 1, 0, flag::kAck, now);
  ++counters_.keep_alive_probes;
  return true;
}

}  // namespace rnic::tcp

#include "tcp/engine.hpp"

namespace rnic::tcp {

namespace {

// What the timer was late by is made up for, but not more than this.
constexpr base::Duration kPacingSlack = std::chrono::milliseconds(1);

}  // namespace

bool Engine::gate_closed(Connection& c, base::Now now) {
  Pacing& p = c.pacing;
  if (p.release_at <= now) {
    c.timers.clear(Timer::Pacing);
    p.gated = p.on;  // a hold is over
    return false;
  }
  if (!p.waiting) ++counters_.pacing_waits;
  p.waiting = true;
  c.timers.set(Timer::Pacing, p.release_at);
  return true;
}

void Engine::pace(Connection& c, uint64_t octets, base::Now now) {
  // Rate: a share above one of cwnd / SRTT, so that the window, not the pace, is what limits.
  Pacing& p = c.pacing;
  if (!p.on || !c.rto.measured()) return;
  const uint64_t percent =
      c.cc.in_slow_start() ? config_.pacing_slow_start_percent : config_.pacing_percent;
  const auto srtt = static_cast<uint64_t>(c.rto.srtt().count());
  const uint64_t divisor = std::max<uint64_t>(uint64_t{c.cc.cwnd()} * percent / 100, 1);
  const auto interval = static_cast<int64_t>(octets * srtt / divisor);
  const base::Now earliest = p.waiting ? now - kPacingSlack : now;
  p.release_at = std::max(p.release_at, earliest) + base::Duration(interval);
  if (p.release_at > now) p.waiting = false;
}

}  // namespace rnic::tcp

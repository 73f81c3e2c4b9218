#include "tcp/keep_alive.hpp"

#include <algorithm>

namespace rnic::tcp {

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

}  // namespace rnic::tcp

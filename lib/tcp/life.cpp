#include "tcp/life.hpp"

#include "base/check.hpp"

namespace rnic::tcp {

void Life::set_state(State next) {
  RNIC_CHECK(kTransitions.allows(state_, next));
  state_ = next;
  prediction_.end();
}

void Life::open(State state, base::Now until) {
  set_state(state);
  timers_.set(Timer::Life, until);
}

void Life::establish() {
  set_state(State::Established);
  timers_.clear(Timer::Life);
}

void Life::want_fin() {
  fin_wanted_ = true;
  prediction_.end();
}

void Life::fin_sent(base::Now now) {
  set_state(state_ == State::CloseWait ? State::LastAck : State::FinWait1);
  progressed(now);
}

bool Life::fin_received() {
  // RFC 9293 s.3.10.7.4, eighth.
  switch (state_) {
    case State::Established: set_state(State::CloseWait); return false;
    case State::FinWait1: set_state(State::Closing); return false;  // our FIN is unacknowledged
    default: return state_ == State::FinWait2;
  }
}

Life::Next Life::fin_acked(base::Now now) {
  // RFC 9293 s.3.10.7.4, fifth.
  switch (state_) {
    case State::FinWait1:
      set_state(State::FinWait2);
      progressed(now);
      return Next::Same;
    case State::Closing: return Next::TimeWait;
    case State::LastAck: return Next::Closed;
    default: return Next::Same;
  }
}

void Life::end() { set_state(State::Closed); }

void Life::progressed(base::Now now) {
  if (!fin_queued()) return;
  if (options_.half_close) {
    timers_.clear(Timer::Life);
  } else {
    timers_.set(Timer::Life, now + config_.close_timeout);
  }
}

bool Life::orphaned(base::Now now) {
  // A peer that answers window probes keeps a connection open without limit (RFC 9293 s.3.8.6.1,
  // MUST-37). Once the user has closed it, it must not hold memory for ever (RFC 6429 s.5). Some
  // timer of the connection runs as long as data is unacknowledged or held back, so this check
  // needs no timer of its own.
  if (!fin_wanted_ || options_.half_close) return false;
  if (config_.orphan_timeout == base::Duration(0)) return false;
  if (state_ == State::FinWait2)
    return false;  // all data is acknowledged: tcp.close_timeout applies
  if (orphan_until_ == base::kNever) orphan_until_ = now + config_.orphan_timeout;
  return now >= orphan_until_;
}

}  // namespace rnic::tcp

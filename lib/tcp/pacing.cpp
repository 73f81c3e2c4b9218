#include "tcp/pacing.hpp"

#include <algorithm>

#include "base/check.hpp"

namespace rnic::tcp {

[[gnu::noinline, gnu::cold]] void Pacing::set_mode(PacingMode next) {
  RNIC_CHECK(kPacingTransitions.allows(mode_, next));
  mode_ = next;
}

void Pacing::enable(bool on) {
  if (this->on() == on) return;
  set_mode(on ? PacingMode::Paced : PacingMode::Held);
}

void Pacing::hold(base::Now until) {
  release_at_ = until;
  waiting_ = false;
  if (!gated()) set_mode(PacingMode::Held);
}

Pacing::Gate Pacing::ask(Timers& timers, base::Now now) {
  if (release_at_ <= now) {
    timers.clear(Timer::Pacing);
    if (mode_ == PacingMode::Held) set_mode(PacingMode::Free);
    return Gate::Open;
  }
  const Gate gate = waiting_ ? Gate::Closed : Gate::Closes;
  waiting_ = true;
  timers.set(Timer::Pacing, release_at_);
  return gate;
}

void Pacing::sent(uint64_t octets, uint64_t rate, base::Duration per, base::Now now) {
  const uint64_t divisor = std::max<uint64_t>(rate, 1);
  const auto interval = static_cast<int64_t>(octets * static_cast<uint64_t>(per.count()) / divisor);
  const base::Now earliest = waiting_ ? now - kSlack : now;
  release_at_ = std::max(release_at_, earliest) + base::Duration(interval);
  if (release_at_ > now) waiting_ = false;
}

}  // namespace rnic::tcp

#include "tcp/pacing.hpp"

#include <algorithm>

namespace rnic::tcp {

Pacing::Gate Pacing::ask(Timers& timers, base::Now now) {
  if (release_at_ <= now) {
    timers.clear(Timer::Pacing);
    gated_ = on_;  // a hold is over
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

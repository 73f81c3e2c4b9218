#include "rnic-run/late_wakes.hpp"

#include <algorithm>
#include <new>

namespace rnic::run {

namespace {

// The thread has the event already, and some instructions to go.
constexpr std::chrono::milliseconds kFirst{1};
constexpr int kLonger = 10;
constexpr std::chrono::milliseconds kLast{100};

}  // namespace

void LateWakes::end_was_read(uint32_t id) noexcept {
  if (!timer_.is_there()) return;
  const auto now = Clock::now();
  try {
    due_.push_back({id, now + kFirst, kFirst});
  } catch (const std::bad_alloc&) {
    return;
  }
  set_timer(now);
}

void LateWakes::release(const std::function<void(uint32_t)>& wake) {
  const auto now = Clock::now();
  for (Due& each : due_) {
    if (now < each.at) continue;
    wake(each.id);
    each.waited *= kLonger;
    each.at = now + each.waited;
  }
  std::erase_if(due_, [](const Due& each) { return each.waited > kLast; });
  if (!due_.empty()) set_timer(now);
}

void LateWakes::set_timer(Clock::time_point now) const {
  const auto sooner = [](const Due& a, const Due& b) { return a.at < b.at; };
  timer_.start(std::min_element(due_.begin(), due_.end(), sooner)->at - now);
}

}  // namespace rnic::run

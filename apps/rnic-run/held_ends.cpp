#include "rnic-run/held_ends.hpp"

#include <sys/timerfd.h>
#include <unistd.h>

#include <algorithm>
#include <utility>

#include "rnic-run/adapter.hpp"

namespace rnic::run {

namespace {

constexpr long kLookEach = 500'000;  // ns

}  // namespace

void HeldEnds::prepare() {
  const std::lock_guard<std::mutex> guard(preparing_);
  if (std::exchange(prepared_, true)) return;
  timer_ = timerfd_create(CLOCK_MONOTONIC, TFD_NONBLOCK | TFD_CLOEXEC);
  if (timer_ < 0 || Adapter::get()->watch().add(timer_, this)) return;
  close(std::exchange(timer_, -1));
}

bool HeldEnds::hold(uint32_t id, uint32_t emptied) {
  if (timer_ < 0) return false;
  held_.push_back({id, emptied, Clock::now() + kLongest});
  if (held_.size() == 1) set_timer(true);
  return true;
}

void HeldEnds::release(const std::function<std::optional<uint32_t>(uint32_t)>& emptied,
                       const std::function<void(uint32_t)>& told) {
  const auto now = Clock::now();
  const auto waits = [&](const Held& each) {
    return now < each.until && emptied(each.id) == each.emptied;
  };
  const auto behind = std::stable_partition(held_.begin(), held_.end(), waits);
  for (auto each = behind; each != held_.end(); ++each) told(each->id);
  held_.erase(behind, held_.end());
  if (held_.empty()) set_timer(false);
}

void HeldEnds::readable() {
  uint64_t rung = 0;
  static_cast<void>(!read(timer_, &rung, sizeof(rung)));
  look_();
  Adapter::get()->watch().look_again(timer_, this);
}

void HeldEnds::set_timer(bool on) const {
  const timespec each{0, on ? kLookEach : 0};
  const itimerspec when{each, each};
  timerfd_settime(timer_, 0, &when, nullptr);
}

}  // namespace rnic::run

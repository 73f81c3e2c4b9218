#include "rnic-run/timer.hpp"

#include <sys/timerfd.h>
#include <unistd.h>

#include <algorithm>
#include <cstdint>
#include <utility>

#include "rnic-run/adapter.hpp"

namespace rnic::run {

namespace {

timespec as_timespec(std::chrono::nanoseconds span) {
  const auto seconds = std::chrono::floor<std::chrono::seconds>(span);
  return {static_cast<time_t>(seconds.count()), static_cast<long>((span - seconds).count())};
}

}  // namespace

void Timer::prepare() {
  const std::lock_guard<std::mutex> guard(preparing_);
  if (std::exchange(prepared_, true)) return;
  fd_ = timerfd_create(CLOCK_MONOTONIC, TFD_NONBLOCK | TFD_CLOEXEC);
  if (fd_ < 0 || Adapter::get()->watch().add(fd_, this)) return;
  close(std::exchange(fd_, -1));
}

void Timer::start(std::chrono::nanoseconds first, std::chrono::nanoseconds again) const {
  // A time of 0 would stop it.
  const auto soonest = std::chrono::nanoseconds(1);
  const itimerspec when{as_timespec(again), as_timespec(std::max(first, soonest))};
  timerfd_settime(fd_, 0, &when, nullptr);
}

void Timer::stop() const {
  const itimerspec never{};
  timerfd_settime(fd_, 0, &never, nullptr);
}

void Timer::readable() {
  uint64_t rung = 0;
  static_cast<void>(!read(fd_, &rung, sizeof(rung)));
  ring_();
  Adapter::get()->watch().look_again(fd_, this);
}

}  // namespace rnic::run

#include "verbs/sleeper.hpp"

#include <poll.h>
#include <sys/timerfd.h>

#include <algorithm>
#include <chrono>
#include <utility>

namespace rnic::verbs {

namespace {

timespec to_timespec(base::Duration duration) {
  const auto seconds = std::chrono::floor<std::chrono::seconds>(duration);
  return {static_cast<time_t>(seconds.count()), static_cast<long>((duration - seconds).count())};
}

}  // namespace

Result<std::unique_ptr<Sleeper>> Sleeper::open(std::vector<device::Device*> devices,
                                               socket::Transport* sockets) {
  auto signal = wakeup::EventSignal::open();
  if (!signal) return tl::unexpected(signal.error());
  auto poller = wakeup::Poller::open();
  if (!poller) return tl::unexpected(poller.error());
  auto timer = wakeup::Descriptor::open(
      [] { return timerfd_create(CLOCK_MONOTONIC, TFD_NONBLOCK | TFD_CLOEXEC); });
  if (!timer.is_open()) return wakeup::no_descriptor("a timerfd");
  for (const int descriptor : {signal->fd(), timer.get()}) {
    if (auto added = poller->add(descriptor); !added) return tl::unexpected(added.error());
    if (sockets != nullptr && !sockets->wake_by(descriptor)) {
      return wakeup::no_descriptor("a watch of an epoll");
    }
  }
  return std::unique_ptr<Sleeper>(
      new Sleeper(devices, sockets, std::move(*signal), std::move(*poller), std::move(timer)));
}

Sleeper::Sleeper(const std::vector<device::Device*>& devices, socket::Transport* sockets,
                 wakeup::EventSignal signal, wakeup::Poller poller, wakeup::Descriptor timer)
    : sockets_(sockets),
      bell_(std::move(signal)),
      poller_(std::move(poller)),
      timer_(std::move(timer)) {
  for (device::Device* device : devices) devices_.push_back({device, std::nullopt});
}

bool Sleeper::listen_to(Watched& watched) const {
  const std::optional<int> descriptor = watched.device->arm();
  if (!descriptor) return false;
  if (watched.descriptor == descriptor) return true;
  if (!poller_.watch(*descriptor)) return false;
  watched.descriptor = descriptor;
  return true;
}

bool Sleeper::arm(base::Now now) {
  // The bell is armed before the devices are looked at: work added after the look rings it.
  bell_.arm();
  deadline_ = base::kNever;
  for (Watched& watched : devices_) {
    if (!listen_to(watched)) deadline_ = base::earlier(deadline_, now + kPause);
  }
  deadline_ = base::earlier(deadline_, next_deadline());
  return deadline_ > now;
}

base::Now Sleeper::next_deadline() const {
  base::Now next = base::kNever;
  for (const Watched& watched : devices_) {
    next = base::earlier(next, watched.device->next_deadline());
  }
  return next;
}

void Sleeper::check_timer() {
  if (bell_.is_armed() && next_deadline() < timer_at_) bell_.ring_unfenced();
}

void Sleeper::sleep(base::Now now, base::Now limit) {
  const base::Now until = base::earlier(deadline_, limit);
  if (sockets_ == nullptr) {
    sleep_until(now, until);
    return;
  }
  set_timer_by(until, now);
  sockets_->sleep();
}

void Sleeper::sleep_until(base::Now now, base::Now until) const {
  pollfd descriptor{poller_.fd(), POLLIN, 0};
  if (until == base::kNever) {
    ppoll(&descriptor, 1, nullptr, nullptr);
    return;
  }
  const timespec timeout = to_timespec(std::max(until - now, base::Duration(0)));
  ppoll(&descriptor, 1, &timeout, nullptr);
}

bool Sleeper::pause(base::Duration longest) const {
  pollfd descriptor{bell_.signal().fd(), POLLIN, 0};
  const timespec timeout = to_timespec(longest);
  return ppoll(&descriptor, 1, &timeout, nullptr) > 0;
}

base::Now Sleeper::begin_sleep() {
  if (timer_at_ != base::kNever) set_timer_to(base::kNever, base::Now());
  return deadline_;
}

void Sleeper::keep_deadline(base::Now now) {
  const base::Now next = next_deadline();
  if (next <= now) {
    bell_.ring();
  } else if (next < deadline_) {
    deadline_ = next;
    set_timer_to(next, now);
  }
}

void Sleeper::set_timer(base::Now now) { set_timer_by(deadline_, now); }

/// A timer that fires too early only causes a needless wake-up, so it is seldom set anew.
void Sleeper::set_timer_by(base::Now when, base::Now now) {
  if (now < timer_at_ && timer_at_ <= when) return;
  if (timer_at_ == when && when == base::kNever) return;
  set_timer_to(when, now);
}

void Sleeper::set_timer_to(base::Now when, base::Now now) {
  timer_at_ = when;
  itimerspec time{};
  if (when != base::kNever) {
    time.it_value = to_timespec(std::max(when - now, base::Duration(1)));
  }
  timerfd_settime(timer_.get(), 0, &time, nullptr);
}

}  // namespace rnic::verbs

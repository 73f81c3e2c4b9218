// The ways in which the application waits: descriptors for its own loop, and wait_until().

#include <algorithm>
#include <chrono>
#include <thread>
#include <utility>

#include "base/starved.hpp"
#include "verbs/belonging.hpp"
#include "verbs/boundary.hpp"
#include "verbs/runtime.hpp"

namespace rnic::verbs {

namespace {

// Work that comes within this time finds the thread awake; a sleep costs about as much.
constexpr base::Duration kSpin = std::chrono::microseconds(50);
// A condition may depend on something that the devices do not know of, such as another thread.
constexpr base::Duration kLookAgain = std::chrono::milliseconds(10);

}  // namespace

// --- DeviceRuntime ---

void DeviceRuntime::wake() {
  if (worker != nullptr) {
    worker->wake();
    return;
  }
  asked.store(true, std::memory_order_relaxed);
  runtime->disturb();
}

void DeviceRuntime::posted(Posted what, bool any_thread) {
  if (worker != nullptr) {
    worker->posted(what);
    return;
  }
  if (what == Posted::FirstSends && !any_thread && runtime->serve_post(*this)) return;
  asked.store(true, std::memory_order_relaxed);
  if (what == Posted::SpareReceives) return;
  any_thread ? runtime->disturb_from_any_thread() : runtime->disturb();
}

uint32_t DeviceRuntime::turn(device::Turn what) {
  if (is_abandoned()) return 0;
  asked.store(false, std::memory_order_relaxed);
  return verbs::turn(*device, runtime->now(), what);
}

Result<QueueAlarm*> DeviceRuntime::alarm_of_events() {
  if (is_abandoned()) return abandoned();
  if (event_alarm != nullptr) return event_alarm;
  std::optional<int> driver;
  if (worker == nullptr) {
    auto fd = runtime->driver_fd();
    if (!fd) return tl::unexpected(fd.error());
    driver = *fd;
  }
  auto alarm = QueueAlarm::open(driver);
  if (!alarm) return tl::unexpected(alarm.error());
  QueueAlarm* const made = alarm->get();
  on_worker(*this, [&](base::Now) { device->set_event_listener(std::move(*alarm)); });
  event_alarm = made;
  // The alarm has not rung for events that are there already.
  event_alarm->arm();
  event_alarm->keep_readable();
  return made;
}

Result<int> DeviceRuntime::event_fd() {
  auto alarm = alarm_of_events();
  if (!alarm) return tl::unexpected(alarm.error());
  arms_driver = worker == nullptr;
  return (*alarm)->fd();
}

std::optional<Event> DeviceRuntime::poll_event() {
  if (is_abandoned()) return std::nullopt;
  auto event = device->poll_event();
  if (!event && event_alarm == nullptr && drive()) event = device->poll_event();
  if (!event && event_alarm != nullptr) {
    event_alarm->arm();
    arms_driver ? runtime->settle() : take_over();
    event = device->poll_event();
    // This event came in between, and there may be more.
    if (event) event_alarm->keep_readable();
  }
  if (event) name_device(*this, *event);
  return event;
}

// --- Runtime ---

Result<Sleeper*> Runtime::sleeper() {
  if (sleeper_ == nullptr) {
    std::vector<device::Device*> devices;
    for (const auto& device : devices_) devices.push_back(device->device.get());
    socket::Transport* const sockets =
        devices_.size() == 1 ? devices_.front()->socket.get() : nullptr;
    auto opened = Sleeper::open(std::move(devices), sockets);
    if (!opened) return tl::unexpected(opened.error());
    core_wait_ = wakeup::CoreWait::of_this_thread();
    sleeper_ = std::move(*opened);  // behind all that may fail
    to_ring_.store(sleeper_.get(), std::memory_order_release);
  }
  return sleeper_.get();
}

Result<int> Runtime::driver_fd() {
  if (is_abandoned()) return abandoned();
  if (threaded()) {
    return base::fail(ErrorCode::Unsupported,
                      "a threaded context is driven by its workers: wait on the descriptors of its "
                      "completion queues and devices, or set worker.mode = inline");
  }
  auto sleeper = this->sleeper();
  if (!sleeper) return tl::unexpected(sleeper.error());
  return (*sleeper)->fd();
}

Result<int> Runtime::fd() {
  if (is_abandoned()) return abandoned();
  if (fd_) return fd_->fd();
  auto driver = driver_fd();
  if (!driver) return driver;
  auto poller = wakeup::Poller::open();
  if (!poller) return tl::unexpected(poller.error());
  if (auto added = poller->add(*driver); !added) return tl::unexpected(added.error());
  for (auto& device : devices_) {
    auto alarm = device->alarm_of_events();
    if (!alarm) return tl::unexpected(alarm.error());
    if (auto added = poller->add((*alarm)->own_fd()); !added) {
      return tl::unexpected(added.error());
    }
  }
  fd_ = std::move(*poller);
  arm();
  return fd_->fd();
}

bool Runtime::is_asked() const {
  return std::any_of(devices_.begin(), devices_.end(), [](const auto& device) {
    return device->asked.load(std::memory_order_relaxed);
  });
}

Sleeper* Runtime::sleeper_or_none() {
  Sleeper* made = nullptr;
  if (!base::attempt([&] { made = sleeper().value_or(nullptr); })) return nullptr;
  return made;
}

bool Runtime::arm() {
  // A loop that polls until there is nothing to do has to end where there is nothing to drive.
  if (is_abandoned() || threaded()) return true;
  serves_next_post_ = true;
  Sleeper* const sleeper = sleeper_or_none();
  const base::Now time = now();
  // Without a descriptor nothing will tell of work, but it is known what there is to do now.
  if (sleeper == nullptr) return next_deadline() > time && !is_asked();
  // Work that a turn has left over makes itself known by its port's descriptor or a deadline.
  const bool nothing = sleeper->arm(time) && !is_asked();
  if (nothing) {
    sleeper->set_timer(time);
  } else {
    sleeper->ring_own();
  }
  return nothing;
}

void Runtime::settle() {
  if (is_asked()) {
    for (auto& device : devices_) device->turn(device::Turn::Posted);
  }
  arm();
}

bool Runtime::serve_post(DeviceRuntime& device) {
  if (sleeper_ == nullptr || !std::exchange(serves_next_post_, false)) return false;
  device.turn(device::Turn::Posted);
  sleeper_->check_timer();
  return true;
}

void Runtime::disturb() {
  if (sleeper_ != nullptr) sleeper_->ring_own();
}

void Runtime::disturb_from_any_thread() {
  // Of this thread, which has rung a doorbell and looks for a sleeper, and of the driver's, which
  // makes one, arms it and looks at the doorbells behind a fence, at least one sees the other's.
  std::atomic_thread_fence(std::memory_order_seq_cst);
  if (Sleeper* const sleeper = to_ring_.load(std::memory_order_acquire)) sleeper->ring_fenced();
}

bool Runtime::wait_until(const std::function<bool()>& done, base::Now deadline) {
  if (is_abandoned()) return done();
  // The condition may fork, and in the child there is nothing to wait for.
  bool came = false;
  const auto over = [&] {
    came = done();
    return came || is_abandoned();
  };
  // Passed by reference, for which std::function needs no memory.
  const auto end = std::ref(over);
  return (threaded() ? watch_until(end, deadline) : drive_until(end, deadline)) && came;
}

/// Inline: this thread drives the devices.
bool Runtime::drive_until(const std::function<bool()>& done, base::Now deadline) {
  // Without a descriptor or memory for a sleeper the thread polls.
  Sleeper* const sleeper = sleeps() ? sleeper_or_none() : nullptr;
  spin_.worked();
  for (;;) {
    if (done()) return true;
    const base::Now time = now();
    if (time >= deadline) return done();
    if (sleeper == nullptr || is_asked() || !spin_.sleeps_at_once()) {
      if (poll() != 0) {
        spin_.worked();
        continue;
      }
      if (idle_ == Idle::Yield) std::this_thread::yield();
      if (sleeper == nullptr || spin_.looks_again(time)) continue;
    }
    if (doze(*sleeper, time, std::min(deadline, time + kLookAgain), done)) return true;
  }
}

/// Sleeps until there is something to do, and does a turn.
/// \return whether `done` is true, which then needs neither
bool Runtime::doze(Sleeper& sleeper, base::Now time, base::Now until,
                   const std::function<bool()>& done) {
  const bool nothing = sleeper.arm(time);
  // The latest turn may have made the condition true although it served nothing, by a timer.
  const bool came = done();
  if (nothing && !came) {
    sleeper.sleep(time, until);
    const base::Now woken = now();
    spin_.slept(woken - time);
    if (core_wait_.has_waited(woken)) spin_.core_lost();
  }
  sleeper.disarm();
  if (!came) poll();
  return came;
}

/// Threaded: workers drive the devices, or this thread while they sleep.
bool Runtime::watch_until(const std::function<bool()>& done, base::Now deadline) {
  const base::Now begun = now();
  while (!sleeps() || now() - begun < kSpin) {
    if (done()) return true;
    if (now() >= deadline) return done();
    bool driven = false;
    for (auto& worker : workers_) driven = worker->drive() || driven;
    if (!driven) std::this_thread::yield();
  }
  const Activity::Waiter waiter(activity_);
  for (;;) {
    const uint64_t turns = waiter.turns();
    for (auto& worker : workers_) worker->take_over();
    if (done()) return true;
    const base::Now time = now();
    if (time >= deadline) return done();
    waiter.sleep(turns, std::min(deadline - time, kLookAgain));
  }
}

}  // namespace rnic::verbs

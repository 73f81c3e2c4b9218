#include "packetdrill/adapter.hpp"

#include <cerrno>

namespace rnic::packetdrill {

namespace {

// The script's thread is stuck, too, when it did not move for this long of real time: it waits for
// the blocked call, which waits for virtual time.
constexpr auto kStuck = std::chrono::milliseconds(300);
constexpr uint32_t kMostEvents = 1'000'000;

}  // namespace

Adapter::Adapter(const Setup& setup)
    : host_(setup), sockets_(setup, host_), main_thread_(std::this_thread::get_id()) {
  host_.on_settled = [this] { try_waiters(); };
}

void Adapter::try_waiters() {
  if (trying_) return;  // an attempt settled the host itself
  trying_ = true;
  sockets_.note_ends();
  bool any = false;
  for (auto at = waiters_.begin(); at != waiters_.end();) {
    Waiter& waiter = **at;
    waiter.outcome = (*waiter.attempt)();
    if (!waiter.outcome) {
      ++at;
      continue;
    }
    waiter.ended_at = host_.now();
    at = waiters_.erase(at);
    any = true;
  }
  trying_ = false;
  if (any) changed_.notify_all();
}

void Adapter::expire_waiters() {
  for (auto at = waiters_.begin(); at != waiters_.end();) {
    Waiter& waiter = **at;
    if (waiter.deadline > host_.now()) {
      ++at;
      continue;
    }
    waiter.outcome = waiter.when_late;
    waiter.ended_at = waiter.deadline;
    at = waiters_.erase(at);
  }
  changed_.notify_all();
}

void Adapter::advance(base::Now until) {
  for (;;) {
    base::Now first = base::kNever;
    for (const Waiter* waiter : waiters_) first = base::earlier(first, waiter->deadline);
    if (first > until) break;
    host_.advance(first);
    expire_waiters();
  }
  host_.advance(until);
}

bool Adapter::next_event() {
  base::Now first = base::kNever;
  for (const Waiter* waiter : waiters_) first = base::earlier(first, waiter->deadline);
  if (host_.next_event(first)) return true;
  if (first == base::kNever) return false;
  host_.advance(first);
  expire_waiters();
  return true;
}

Outcome Adapter::call(const std::function<Attempt()>& attempt, bool nonblocking,
                      base::Duration patience, Outcome when_late) {
  std::unique_lock lock(mutex_);
  ++moves_;
  Attempt outcome = attempt();
  if (!outcome && nonblocking) outcome = -EAGAIN;
  if (!outcome && patience <= base::Duration(0)) outcome = when_late;
  if (outcome) return *outcome;
  Waiter waiter;
  waiter.attempt = &attempt;
  if (patience != base::Duration::max()) waiter.deadline = host_.now() + patience;
  waiter.when_late = when_late;
  return wait(waiter, lock);
}

Outcome Adapter::wait(Waiter& waiter, std::unique_lock<std::mutex>& lock) {
  waiters_.push_back(&waiter);
  const bool alone = std::this_thread::get_id() == main_thread_;
  while (!waiter.outcome) {
    const uint64_t moves = moves_;
    if (!alone && changed_.wait_for(lock, kStuck) == std::cv_status::no_timeout) continue;
    if (waiter.outcome || (!alone && moves != moves_)) continue;
    if (!next_event()) {  // it would wait for ever
      waiters_.remove(&waiter);
      return -EDEADLK;
    }
  }
  returned_[std::this_thread::get_id()] = waiter.ended_at;
  return *waiter.outcome;
}

bool Adapter::inject(base::ByteView packet) {
  const std::lock_guard lock(mutex_);
  ++moves_;
  return host_.receive(packet);
}

std::optional<SentPacket> Adapter::extract() {
  const std::lock_guard lock(mutex_);
  ++moves_;
  for (uint32_t i = 0; host_.sent().empty(); ++i) {
    if (i == kMostEvents || !next_event()) return std::nullopt;
  }
  SentPacket packet = std::move(host_.sent().front());
  host_.sent().pop_front();
  return packet;
}

void Adapter::sleep(base::Duration time) {
  const std::lock_guard lock(mutex_);
  ++moves_;
  advance(host_.now() + time);
}

base::Now Adapter::read_clock() {
  const std::lock_guard lock(mutex_);
  const auto found = returned_.find(std::this_thread::get_id());
  if (found != returned_.end()) {
    const base::Now at = found->second;
    returned_.erase(found);
    return at;
  }
  ++moves_;
  advance(host_.now() + std::chrono::microseconds(1));
  return host_.now();
}

bool Adapter::owns(int fd) {
  const std::lock_guard lock(mutex_);
  return sockets_.owns(fd);
}

bool Adapter::nonblocking(int fd) {
  const std::lock_guard lock(mutex_);
  return sockets_.nonblocking(fd);
}

}  // namespace rnic::packetdrill

/// \file
/// The calls of packetdrill on a Host and its Sockets: blocking calls, and who moves the time.
///
/// packetdrill makes blocking calls from a second thread while its first one goes on with the
/// script. One mutex covers everything. A call that cannot be finished leaves its attempt here and
/// sleeps; the attempt is repeated, by whoever moves the world, whenever something happened. So the
/// outcome and its virtual time do not depend on how the machine schedules the threads.
#pragma once

#include <condition_variable>
#include <functional>
#include <list>
#include <map>
#include <mutex>
#include <optional>
#include <thread>

#include "packetdrill/sockets.hpp"

namespace rnic::packetdrill {

class Adapter {
 public:
  explicit Adapter(const Setup& setup);

  /// Runs `attempt` until it has an outcome. \param nonblocking EAGAIN instead of waiting.
  /// \param patience how long at most; then the outcome is `when_late`. \return value or -errno.
  Outcome call(const std::function<Attempt()>& attempt, bool nonblocking,
               base::Duration patience = base::Duration::max(), Outcome when_late = 0);

  /// One packet in. False: not taken.
  bool inject(base::ByteView packet);
  /// The next packet out; waits for timers. nullopt: no timer is left, none will ever come.
  std::optional<SentPacket> extract();
  void sleep(base::Duration time);
  /// The clock runs on by a microsecond a reading; a thread that was blocked reads when its call
  /// ended.
  [[nodiscard]] base::Now read_clock();

  /// Only while a call() runs its attempt, or with no other thread about.
  [[nodiscard]] Sockets& sockets() { return sockets_; }
  [[nodiscard]] bool owns(int fd);
  [[nodiscard]] bool nonblocking(int fd);

 private:
  struct Waiter {
    const std::function<Attempt()>* attempt = nullptr;
    base::Now deadline = base::kNever;
    Outcome when_late = 0;
    Attempt outcome;
    base::Now ended_at{};
  };

  Outcome wait(Waiter& waiter, std::unique_lock<std::mutex>& lock);
  void try_waiters();
  void expire_waiters();
  void advance(base::Now until);
  bool next_event();

  std::mutex mutex_;
  std::condition_variable changed_;
  Host host_;
  Sockets sockets_;
  std::list<Waiter*> waiters_;
  std::map<std::thread::id, base::Now> returned_;  // not read from the clock yet
  const std::thread::id main_thread_;
  uint64_t moves_ = 0;  // of anybody but the sleepers
  bool trying_ = false;
};

}  // namespace rnic::packetdrill

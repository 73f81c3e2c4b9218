/// \file
/// LateWakes: programs that wait for completions are woken behind the end of a connection.
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <utility>
#include <vector>

#include "rnic-run/timer.hpp"

namespace rnic::run {

/// A program may wait for completions on one thread and read events on another one, which tells the
/// first by a variable that the connection has ended (rsockets does). Over hardware the event is
/// there before the flush that wakes the first thread, which so finds the variable set. Here the
/// flush comes first, as the event waits until the program has polled (HeldEnds). So who waits is
/// woken again when the program has read the event: soon, and twice more for the case that the
/// machine gave its thread no processor to set the variable.
///
/// The owner guards it by a lock of its own, but for prepare().
class LateWakes {
 public:
  /// \param look is called on the thread of the watch when somebody may have to be woken
  explicit LateWakes(std::function<void()> look) : timer_(std::move(look)) {}
  LateWakes(const LateWakes&) = delete;
  LateWakes& operator=(const LateWakes&) = delete;
  ~LateWakes() = default;  // never: the only one lives as long as the process

  /// As Timer::prepare().
  void prepare() { timer_.prepare(); }
  /// The program has read the end of an id's connection. Without memory nobody is woken for it.
  void end_was_read(uint32_t id) noexcept;
  /// \param wake gets each id for which it is time
  void release(const std::function<void(uint32_t)>& wake);

 private:
  using Clock = std::chrono::steady_clock;

  struct Due {
    uint32_t id;
    Clock::time_point at;
    std::chrono::milliseconds waited;  // until this wake
  };

  void set_timer(Clock::time_point now) const;

  std::vector<Due> due_;
  Timer timer_;  // rings at the first time of due_
};

}  // namespace rnic::run

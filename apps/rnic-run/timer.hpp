/// \file
/// Timer: calls on the thread of the watch, after a time or time and again.
#pragma once

#include <chrono>
#include <functional>
#include <mutex>
#include <utility>

#include "rnic-run/watch.hpp"

namespace rnic::run {

/// The owner guards it by a lock of its own, but for prepare().
class Timer final : private Watched {
 public:
  /// \param ring is called on the thread of the watch, without a lock
  explicit Timer(std::function<void()> ring) : ring_(std::move(ring)) {}
  Timer(const Timer&) = delete;
  Timer& operator=(const Timer&) = delete;
  ~Timer() override = default;  // never: its owners live as long as the process

  /// Gets a descriptor from the system at the first call. Called on a thread of the program,
  /// without a lock that the thread of the watch may wait for.
  void prepare();
  /// \return false: the system gave none, and it never rings
  [[nodiscard]] bool is_there() const { return fd_ >= 0; }
  /// Rings after `first`, and then each `again`; 0: never again.
  void start(std::chrono::nanoseconds first, std::chrono::nanoseconds again = {}) const;
  void stop() const;

 private:
  void readable() override;

  std::function<void()> ring_;
  // In the place of a std::once_flag, which has memory of the thread's that is allocated.
  std::mutex preparing_;
  bool prepared_ = false;
  int fd_ = -1;  // a timerfd; set by prepare()
};

}  // namespace rnic::run

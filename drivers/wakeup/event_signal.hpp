/// \file
/// The descriptor that a bell raises.
#pragma once

#include <utility>

#include "base/bell.hpp"
#include "base/fail.hpp"

namespace rnic::wakeup {

/// A descriptor that is readable from raise() until clear(): an eventfd.
class EventSignal {
 public:
  /// ResourceExhausted when the system has no descriptor left.
  static Result<EventSignal> open();
  ~EventSignal();
  EventSignal(EventSignal&& other) noexcept : fd_(std::exchange(other.fd_, -1)) {}
  EventSignal& operator=(EventSignal&& other) noexcept {
    std::swap(fd_, other.fd_);
    return *this;
  }

  /// Any thread.
  void raise();
  void clear();
  /// For poll() and epoll: readable while it is raised. Nobody else reads or writes it.
  [[nodiscard]] int fd() const { return fd_; }

 private:
  explicit EventSignal(int fd) : fd_(fd) {}
  int fd_ = -1;
};

using Bell = base::BellOver<base::BellWord, EventSignal>;

}  // namespace rnic::wakeup

/// \file
/// Epoll: the sockets of a transport that epoll watches, and what it has told of them.
#pragma once

#include <array>
#include <cstdint>
#include <span>
#include <utility>

#include "base/fail.hpp"
#include "socket/calls.hpp"
#include "socket/system.hpp"

namespace rnic::socket {

/// epoll tells of an edge once. Whoever sleeps in it is told, too, so what has been told is kept
/// until the transport takes it.
///
/// Descriptors of others, such as a bell's, may end a sleep; nobody is told of them.
///
/// Belongs to the thread that polls the transport.
class Epoll {
 public:
  /// Environment when the system gives none. \param system outlives it
  static Result<Epoll> open(System& system);

  /// \param operation EPOLL_CTL_ADD, EPOLL_CTL_MOD or EPOLL_CTL_DEL
  /// \param word comes back with an event of `descriptor`; not kOthers
  /// \return false: the system does not take it, errno says why
  bool watch(int operation, int descriptor, uint32_t events, uint64_t word) const;
  /// Has each sleep() end while `descriptor`, which belongs to the caller, is readable.
  [[nodiscard]] bool wake_by(int descriptor) const;

  /// For poll() and epoll of others, which do not take events from it.
  [[nodiscard]] int fd() const { return descriptor_.get(); }

  /// Sleeps until there is an event, a descriptor of wake_by() is readable, or a signal has come.
  void sleep();
  /// \return whether a sleep has been told of events that nobody has taken
  [[nodiscard]] bool has_events() const { return count_ != 0; }
  /// The events of the latest sleep or, if there are none, those that there are now. They are valid
  /// until the next call.
  [[nodiscard]] std::span<const epoll_event> take();

 private:
  static constexpr int kEventsAtOnce = 64;
  static constexpr uint64_t kOthers = UINT64_MAX;

  Epoll(System& system, Descriptor descriptor)
      : system_(&system), descriptor_(std::move(descriptor)) {}
  void keep(int told);

  System* system_;
  Descriptor descriptor_;
  std::array<epoll_event, kEventsAtOnce> events_{};
  uint32_t count_ = 0;  // of events_ that nobody has taken
};

}  // namespace rnic::socket

/// \file
/// HeldEnds: ends of connections of which the program is not told yet.
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <optional>
#include <utility>
#include <vector>

#include "rnic-run/timer.hpp"
#include "rnic-run/unread.hpp"

namespace rnic::run {

/// What the peer has sent last and the end of its connection may come at once here: a TCP segment
/// may bring both. A program that is told of the end first may destroy its queue pair, and the last
/// message with it (libfabric's rxm does). So the end is told when the program has polled what has
/// completed before, or after kLongest, as it may never poll again.
///
/// The owner guards it by a lock of its own, but for prepare().
class HeldEnds {
 public:
  static constexpr std::chrono::milliseconds kLongest{20};

  /// \param look is called on the thread of the watch, time and again, while an end is held
  explicit HeldEnds(std::function<void()> look) : timer_(std::move(look)) {}
  HeldEnds(const HeldEnds&) = delete;
  HeldEnds& operator=(const HeldEnds&) = delete;
  ~HeldEnds() = default;  // never: the only one lives as long as the process

  /// As Timer::prepare().
  void prepare() { timer_.prepare(); }
  /// Holds the end of an id's connection until each of its queues that has something unread was
  /// found empty.
  /// \return false: there is no timer
  [[nodiscard]] bool hold(uint32_t id, const Unread& unread);
  /// Takes out each id whose end may be told now.
  /// \param was_read whether that has come about, or the queues are gone
  /// \param told gets the id
  void release(const std::function<bool(uint32_t, const Unread&)>& was_read,
               const std::function<void(uint32_t)>& told);

 private:
  using Clock = std::chrono::steady_clock;

  struct Held {
    uint32_t id;
    Unread unread;
    Clock::time_point until;
  };

  std::vector<Held> held_;
  Timer timer_;  // rings while held_ is not empty
};

}  // namespace rnic::run

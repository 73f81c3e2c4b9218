/// \file
/// Hierarchical timing wheel, one per worker (Varghese and Lauck). Owners embed a node.
#pragma once

#include <array>
#include <cstdint>

#include "base/check.hpp"
#include "base/time.hpp"

namespace rnic::base {

/// A timer embedded in its owner. It must not be destroyed while armed.
struct TimerNode {
  TimerNode* next = nullptr;
  TimerNode* prev = nullptr;
  Now deadline = kNever;         ///< exact; the wheel never fires before it
  void* owner = nullptr;         ///< for the expiry callback
  uint16_t bucket = UINT16_MAX;  ///< where in the wheel; UINT16_MAX = not armed

  [[nodiscard]] bool armed() const { return bucket != UINT16_MAX; }
};

/// Four levels of 64 buckets over a tick of 2^15 ns (32.8 us): 9 minutes; later deadlines wait in
/// the last bucket and are sorted in again. Arm, cancel: O(1). Timers fire at or after their
/// deadline, by at most one tick when expire() is called as soon as next_deadline() says.
class TimerWheel {
 public:
  static constexpr int kTickShift = 15;
  static constexpr int kLevelBits = 6;
  static constexpr int kLevels = 4;

  explicit TimerWheel(Now start) : current_tick_(tick_of(start)) {
    for (auto& head : heads_) head.next = head.prev = &head;
  }

  /// Arms or re-arms.
  void arm(TimerNode& node, Now deadline);
  void cancel(TimerNode& node);

  /// Earliest time at which expire() may have something to do; kNever when nothing is armed. It may
  /// be earlier than the earliest timer (a cascade), never later.
  [[nodiscard]] Now next_deadline() const;
  /// \return expire() has something to do whether timers are due or not, as the time has gone on to
  /// another tick
  [[nodiscard]] bool is_behind(Now now) const { return current_tick_ <= tick_of(now); }
  /// \return next_deadline() <= now, which is found by one comparison for most of the time
  [[nodiscard]] bool due(Now now) { return now >= not_before_ && is_due(now); }

  /// Calls on_expired(TimerNode&) for each timer whose deadline has come; the node is disarmed
  /// first and the callback may arm and cancel anything.
  template <typename F>
  void expire(Now now, F&& on_expired) {
    TimerNode due;
    due.next = due.prev = &due;
    collect(now, due);
    while (due.next != &due) {
      TimerNode& node = *due.next;
      unlink(node);
      on_expired(node);
    }
  }

  [[nodiscard]] uint32_t armed() const { return armed_; }
  /// Counts the armed timers anew, and checks that each is linked both ways in a bucket that is not
  /// too late for it. Not within expire().
  void validate() const;

 private:
  static constexpr int kBuckets = 1 << kLevelBits;
  static constexpr uint16_t kDueBucket = UINT16_MAX - 1;

  static uint64_t tick_of(Now t) { return static_cast<uint64_t>(nanos(t)) >> kTickShift; }
  /// Rounded up: a timer fires in the first tick that lies wholly at or after its deadline.
  static uint64_t firing_tick(Now deadline) {
    if (deadline == kNever) return UINT64_MAX;
    return (static_cast<uint64_t>(nanos(deadline)) + (1u << kTickShift) - 1) >> kTickShift;
  }

  [[nodiscard]] static Now time_of(uint64_t tick) {
    return from_nanos(static_cast<int64_t>(tick << kTickShift));
  }
  [[nodiscard]] bool is_due(Now now);
  [[nodiscard]] uint64_t next_busy_tick() const;
  void collect(Now now, TimerNode& due);
  void advance_one_tick(TimerNode& due);
  void insert(TimerNode& node);
  void unlink(TimerNode& node);

  std::array<TimerNode, kLevels * kBuckets> heads_{};
  std::array<uint64_t, kLevels> occupied_{};  // bit b: bucket b of the level is not empty
  uint64_t current_tick_;                     // everything before it has fired
  uint32_t armed_ = 0;
  Now not_before_ = kNever;  // Invariant: not later than next_deadline(). What is armed lowers it.
};

}  // namespace rnic::base

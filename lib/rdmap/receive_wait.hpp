/// \file
/// The wait of a message that has found no receive posted (RFC 5041 s.7.1).
#pragma once

#include <cstdint>

#include "base/check.hpp"
#include "base/time.hpp"
#include "rdmap/receive_wait_state.hpp"

namespace rnic::rdmap {

/// At most one message of a stream waits at a time: the next in order. RFC 5041 s.7.1 lets an
/// implementation wait for a buffer as long as it needs no memory for what comes meanwhile.
class ReceiveWait {
 public:
  /// \param limit how long a message may wait; 0: not at all
  explicit ReceiveWait(base::Duration limit) : limit_(limit) {}

  /// \return whether messages may wait
  [[nodiscard]] bool is_allowed() const {
    return limit_ > base::Duration(0) && state_ <= State::Going;
  }
  /// \return whether a message waits
  [[nodiscard]] bool is_going() const { return state_ == State::Going || state_ == State::CutOff; }
  /// The MSN of the message that waits. Precondition: is_going().
  [[nodiscard]] uint32_t msn() const { return msn_; }
  /// The time at which the wait is over. Precondition: is_going().
  [[nodiscard]] base::Now deadline() const { return deadline_; }
  /// \return whether the message has waited for as long as it may, or end_all() was called
  [[nodiscard]] bool is_over(base::Now now) const {
    return state_ == State::CutOff || (state_ == State::Going && now >= deadline_);
  }

  /// Message `msn` begins to wait. Precondition: is_allowed(). A message that waited before has its
  /// receive.
  void begin(uint32_t msn, base::Now now) {
    RNIC_CHECK(is_allowed());
    set_state(State::Going);
    msn_ = msn;
    deadline_ = base::after(now, limit_);
  }
  /// Nothing waits any more: the message has its receive, or fails.
  void end() {
    if (is_going()) set_state(state_ == State::Going ? State::Idle : State::Barred);
  }
  /// Allows no wait from now on, and ends one that is going.
  void end_all() {
    if (state_ <= State::Going) set_state(is_going() ? State::CutOff : State::Barred);
  }

 private:
  using State = ReceiveWaitState;

  void set_state(State next) {
    RNIC_CHECK(kReceiveWaitTransitions.allows(state_, next));
    state_ = next;
  }

  const base::Duration limit_;
  State state_ = State::Idle;
  uint32_t msn_ = 0;
  base::Now deadline_ = base::kNever;
};

}  // namespace rnic::rdmap

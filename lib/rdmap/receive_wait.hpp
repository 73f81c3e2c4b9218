/// \file
/// The wait of a message that has found no receive posted (RFC 5041 s.7.1).
#pragma once

#include <cstdint>

#include "base/check.hpp"
#include "base/time.hpp"

namespace rnic::rdmap {

/// At most one message of a stream waits at a time: the next in order. RFC 5041 s.7.1 lets an
/// implementation wait for a buffer as long as it needs no memory for what comes meanwhile.
class ReceiveWait {
 public:
  /// \param limit how long a message may wait; 0: not at all
  explicit ReceiveWait(base::Duration limit) : limit_(limit) {}

  /// \return whether messages may wait
  [[nodiscard]] bool is_allowed() const { return limit_ > base::Duration(0); }
  /// \return whether a message waits
  [[nodiscard]] bool is_going() const { return going_; }
  /// The MSN of the message that waits. Precondition: is_going().
  [[nodiscard]] uint32_t msn() const { return msn_; }
  /// The time at which the wait is over. Precondition: is_going().
  [[nodiscard]] base::Now deadline() const { return deadline_; }
  /// \return whether a message has waited for as long as it may
  [[nodiscard]] bool is_over(base::Now now) const { return going_ && now >= deadline_; }

  /// Message `msn` begins to wait. Precondition: is_allowed(). A message that waited before has its
  /// receive.
  void begin(uint32_t msn, base::Now now) {
    RNIC_CHECK(is_allowed());
    going_ = true;
    msn_ = msn;
    deadline_ = base::after(now, limit_);
  }
  /// Nothing waits any more: the message has its receive, or fails.
  void end() { going_ = false; }

 private:
  const base::Duration limit_;
  bool going_ = false;
  uint32_t msn_ = 0;
  base::Now deadline_ = base::kNever;
};

}  // namespace rnic::rdmap

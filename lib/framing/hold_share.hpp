/// \file
/// HoldShare: how much hold space some sessions may take together.
#pragma once

#include <algorithm>
#include <cstdint>
#include <memory>

#include "base/check.hpp"

namespace rnic::framing {

/// A part of a device's hold space, in octets. Sessions that have one take no more, but for what
/// comes at their delivery points: the reserve is there for that, so that no session stands still.
/// Belongs to the worker.
class HoldShare {
 public:
  explicit HoldShare(uint64_t limit) : limit_(limit) {}
  HoldShare(const HoldShare&) = delete;
  HoldShare& operator=(const HoldShare&) = delete;

  [[nodiscard]] uint64_t used() const { return used_; }
  [[nodiscard]] uint64_t left() const { return limit_ - std::min(used_, limit_); }

  // Called by the sessions' HeldOctets.
  void add(uint64_t octets) { used_ += octets; }
  void give_back(uint64_t octets) {
    RNIC_CHECK(octets <= used_);
    used_ -= octets;
  }

  /// \param held what the sessions hold, counted anew
  void validate(uint64_t held) const { RNIC_CHECK(used_ == held); }

 private:
  const uint64_t limit_;
  uint64_t used_ = 0;  // Invariant: the sum of what the sessions hold
};

/// Lives as long as a session that has it, even when that outlives who has set the limit.
using HoldSharePtr = std::shared_ptr<HoldShare>;

}  // namespace rnic::framing

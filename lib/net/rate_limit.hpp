/// \file
/// Token bucket for answers that any host can ask for.
#pragma once

#include <algorithm>
#include <cstdint>

#include "base/time.hpp"

namespace rnic::net {

/// Allows at most `per_second` events a second, and the events of one second at once. 0: allows
/// none.
class RateLimit {
 public:
  /// The bucket is full at first.
  RateLimit(uint32_t per_second, base::Now now)
      : interval_(per_second == 0 ? base::Duration{0}
                                  : std::max(kSecond / per_second, base::Duration{1})),
        spent_until_(now - kSecond) {}

  bool allow(base::Now now) {
    if (interval_ <= base::Duration{0}) return false;
    // The bucket holds the events of one second at most.
    spent_until_ = std::max(spent_until_, now - kSecond);
    if (now - spent_until_ < interval_) return false;
    spent_until_ += interval_;
    return true;
  }

 private:
  static constexpr base::Duration kSecond = std::chrono::seconds(1);

  base::Duration interval_;  // time for one event
  base::Now spent_until_;    // the level of the bucket is the time since this moment
};

}  // namespace rnic::net

/// \file
/// Token bucket for answers that any host can ask for.
#pragma once

#include <algorithm>
#include <cstdint>

#include "base/time.hpp"

namespace rnic::net {

/// At most `per_second` events a second, and one second's worth at once. 0: never.
class RateLimit {
 public:
  /// Starts full.
  RateLimit(uint32_t per_second, base::Now now)
      : interval_(per_second == 0 ? base::Duration{0}
                                  : std::max(kSecond / per_second, base::Duration{1})),
        spent_until_(now - kSecond) {}

  bool allow(base::Now now) {
    if (interval_ <= base::Duration{0}) return false;
    // What has not been spent for a second is lost.
    spent_until_ = std::max(spent_until_, now - kSecond);
    if (now - spent_until_ < interval_) return false;
    spent_until_ += interval_;
    return true;
  }

 private:
  static constexpr base::Duration kSecond = std::chrono::seconds(1);

  base::Duration interval_;  // of one event
  base::Now spent_until_;    // the bucket's level is the time since then
};

}  // namespace rnic::net

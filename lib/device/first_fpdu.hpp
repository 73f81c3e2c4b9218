/// \file
/// FirstFpduTime: how long a request may wait for the peer's first FPDU before the application is
/// told (RFC 5044 s.7.1.2 rule 4).
#pragma once

#include "base/time.hpp"

namespace rnic::device {

class FirstFpduTime {
 public:
  /// A start-up in which nothing waits: either side may send first.
  FirstFpduTime() = default;
  /// \param limit mpa.rtr_timeout
  explicit FirstFpduTime(base::Duration limit) : limit_(limit) {}

  /// A request waits from now on. \return when it has waited too long
  base::Now begin(base::Now now) { return due_ = now + limit_; }
  /// True once, in the first call at or after the time that begin() returned.
  bool is_over(base::Now now) {
    const bool over = now >= due_;
    if (over) due_ = base::kNever;
    return over;
  }

 private:
  base::Duration limit_{};
  base::Now due_ = base::kNever;  // kNever: nobody waits, or it was told
};

}  // namespace rnic::device

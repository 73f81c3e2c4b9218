/// \file
/// TurnClock: the time of a device's turn, for what is stamped in the middle of one.
#pragma once

#include "base/time.hpp"

namespace rnic::device {

/// The worker's.
class TurnClock {
 public:
  /// A turn of the device begins, or a call of the application that is carried out between two.
  void begin(base::Now now) { now_ = now; }
  [[nodiscard]] base::Now now() const { return now_; }

 private:
  base::Now now_{};
};

}  // namespace rnic::device

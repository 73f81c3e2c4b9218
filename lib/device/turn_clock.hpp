/// \file
/// TurnClock: the time of a device's turn, with which completions made in the turn are stamped.
#pragma once

#include "base/time.hpp"

namespace rnic::device {

/// Belongs to the worker.
class TurnClock {
 public:
  /// A turn of the device begins, or a call of the application that is carried out between turns.
  void begin(base::Now now) { now_ = now; }
  [[nodiscard]] base::Now now() const { return now_; }

 private:
  base::Now now_{};
};

}  // namespace rnic::device

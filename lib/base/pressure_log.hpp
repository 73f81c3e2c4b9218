/// \file
/// One line for many of the same kind.
#pragma once

#include <cstdint>
#include <utility>

#include "base/time.hpp"

namespace rnic::base {

/// Strangers decide how often something happens; the log gets one line in ten seconds that tells
/// how many they were.
class PressureLog {
 public:
  static constexpr Duration kPeriod = std::chrono::seconds(10);

  /// Counts one. \return how many the line is to tell; 0: no line now
  uint64_t note(Now now) {
    ++untold_;
    if (told_ && now - last_ < kPeriod) return 0;
    told_ = true;
    last_ = now;
    return std::exchange(untold_, 0);
  }

 private:
  bool told_ = false;
  Now last_{};
  uint64_t untold_ = 0;
};

}  // namespace rnic::base

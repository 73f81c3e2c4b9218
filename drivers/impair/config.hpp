/// \file
/// The faults of the bad network. Probabilities are per frame, 0 to 1.
#pragma once

#include <chrono>
#include <cstdint>

#include "base/fail.hpp"
#include "base/time.hpp"

namespace rnic::impair {

struct Config {
  double drop = 0;
  double reorder = 0;
  double duplicate = 0;
  double corrupt = 0;
  double repair =
      0.5;  ///< share of corrupted TCP data frames whose TCP checksum is made right again
  double resegment = 0;    ///< TCP data segments cut in two
  double burst_enter = 0;  ///< Gilbert: a burst of loss begins with this frame
  double burst_leave = 1;  ///< Gilbert: the burst ends behind this frame

  uint32_t reorder_min = 1;   ///< a reordered frame waits until so many later ones have passed,
  uint32_t reorder_max = 32;  ///< drawn evenly from reorder_min to reorder_max,
  base::Duration reorder_timeout = std::chrono::milliseconds(1);  ///< but at most so long

  base::Duration delay{0};
  base::Duration jitter{0};  ///< added to delay, drawn evenly from 0 to jitter

  /// \return whether nothing happens to any frame
  [[nodiscard]] bool harmless() const {
    return drop == 0 && reorder == 0 && duplicate == 0 && corrupt == 0 && resegment == 0 &&
           burst_enter == 0 && delay.count() == 0 && jitter.count() == 0;
  }
};

/// Refuses probabilities outside 0 to 1, a reorder_min of 0 or above reorder_max, and negative
/// times.
[[nodiscard]] Status check(const Config& config);

}  // namespace rnic::impair

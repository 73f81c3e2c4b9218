/// \file
/// Counters of the bad network.
#pragma once

#include "base/counters.hpp"

#define RNIC_IMPAIR_COUNTERS(X)                                                 \
  X(frames, "frames", "taken from above")                                       \
  X(forwarded, "frames", "handed to the port below")                            \
  X(dropped, "frames", "lost, alone or in a burst")                             \
  X(reordered, "frames", "overtaken by at least one later frame")               \
  X(duplicated, "frames", "copies made")                                        \
  X(corrupted, "frames", "one bit flipped, repaired ones included")             \
  X(repaired, "frames", "of these, with a correct TCP checksum again")          \
  X(resegmented, "frames", "TCP segments cut in two")                           \
  X(delayed, "frames", "held for delay and jitter")                             \
  X(no_buffer, "frames", "not duplicated or cut: the port below had no buffer") \
  X(retries, "events", "times the port below took less than offered")

namespace rnic::impair {

RNIC_DEFINE_COUNTERS(ImpairCounters, RNIC_IMPAIR_COUNTERS)

}  // namespace rnic::impair

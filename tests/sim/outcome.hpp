/// \file
/// What a run of one world leaves behind, and where it writes when it is replayed.
#pragma once

#include <cstdint>
#include <string>

#include "totals.hpp"

namespace rnic::simulation {

struct Outcome {
  bool ok = false;
  std::string checker;
  std::string message;
  std::string state;  ///< where everything stood, when it failed
  Totals totals;
  double virtual_seconds = 0;
  uint64_t steps = 0;
};

/// A replay writes `prefix`.trace and `prefix`.left.pcapng, `prefix`.right.pcapng. Empty: nothing.
struct Recording {
  std::string prefix;
};

}  // namespace rnic::simulation

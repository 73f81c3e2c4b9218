/// \file
/// What a run of one world leaves behind.
#pragma once

#include <cstdint>
#include <string>

#include "recording.hpp"
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
  uint64_t fingerprint = 0;
};

}  // namespace rnic::simulation

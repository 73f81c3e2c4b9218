/// \file
/// Calls that ask, or that change no more than how something is told.
#pragma once

#include "rnic-spin/world.hpp"

namespace rnic::spin {

/// Traces connections, names queue pairs anew, moderates completions, and asks for descriptors and
/// counts.
class Asking {
 public:
  explicit Asking(World& world) : world_(world) {}

  void start_trace(Side& side);
  void take_trace(Side& side);
  void name(Side& side);
  void moderate(Side& side);
  void descriptors(Side& side);
  void counts(Side& side);

 private:
  World& world_;
};

}  // namespace rnic::spin

/// \file
/// The random caller.
#pragma once

#include <cstdint>
#include <functional>
#include <vector>

#include "rnic-spin/arrivals.hpp"
#include "rnic-spin/making.hpp"
#include "rnic-spin/working.hpp"
#include "rnic-spin/world.hpp"

namespace rnic::spin {

/// Makes every call of the API, with good arguments and bad ones, in an order that the seed says,
/// on the two devices of a context; holds each answer, completion and event against what it knows
/// of the objects, and the memory against Field's rule.
class Spinner {
 public:
  /// \param context has two devices, which can reach each other
  Spinner(Context& context, uint64_t seed);

  /// Makes the devices and listens. Throws Violation, as the others do.
  void start();
  /// One call, or a few that belong together.
  void step();
  /// Ends everything, in an order that the seed says; nothing may be left.
  void finish();

  [[nodiscard]] const Judge& judge() const { return world_.judge; }

 private:
  struct Action {
    uint32_t weight;
    std::function<void(Side&)> carry_out;
  };
  [[nodiscard]] std::vector<Action> objects();
  [[nodiscard]] std::vector<Action> traffic();

  World world_;
  Arrivals arrivals_;
  Making making_;
  Connecting connecting_;
  Working working_;
  std::vector<Action> actions_;
  uint32_t weights_ = 0;  ///< of all actions
  uint64_t steps_ = 0;
};

}  // namespace rnic::spin

/// \file
/// The random caller.
#pragma once

#include <cstdint>
#include <functional>
#include <vector>

#include "rnic-spin/arrivals.hpp"
#include "rnic-spin/asking.hpp"
#include "rnic-spin/converting.hpp"
#include "rnic-spin/framed.hpp"
#include "rnic-spin/granting.hpp"
#include "rnic-spin/making.hpp"
#include "rnic-spin/parties.hpp"
#include "rnic-spin/ports.hpp"
#include "rnic-spin/posting.hpp"
#include "rnic-spin/stillness.hpp"
#include "rnic-spin/streaming.hpp"
#include "rnic-spin/working.hpp"
#include "rnic-spin/world.hpp"

namespace rnic::spin {

/// Makes calls of the verbs, with good arguments and bad ones, in an order that the seed says, on
/// the two devices of a context; holds answers, completions and events against what it knows of the
/// objects, and the memory against Field's rule. Left out are the time stamps of completions, when
/// the descriptor of a moderated queue becomes readable, and coroutines.
class Spinner {
 public:
  /// \param context has two devices, which can reach each other
  Spinner(Context& context, uint64_t seed);

  /// Finds the devices and listens. An error is the machine's or the configuration's: the others
  /// throw Violation.
  [[nodiscard]] Status start();
  /// One call, or a few that belong together.
  void step();
  /// Ends everything, in an order that the seed says; nothing may be left.
  void finish();

  [[nodiscard]] Judge& judge() { return world_.judge; }

 private:
  struct Action {
    uint32_t weight;
    std::function<void(Side&)> carry_out;
  };
  [[nodiscard]] std::vector<Action> objects();
  [[nodiscard]] std::vector<Action> parties();
  [[nodiscard]] std::vector<Action> traffic();
  [[nodiscard]] std::vector<Action> grants();
  [[nodiscard]] std::vector<Action> questions();
  [[nodiscard]] std::vector<Action> streams();
  [[nodiscard]] std::vector<Action> frames();
  /// Ends everything of a device, in any order.
  void end_all(Side& side);
  void reject_all(Side& side);

  World world_;
  Arrivals arrivals_;
  Making making_;
  Parties parties_;
  Ports ports_;
  Streaming streaming_;
  Converting converting_;
  Framed framed_;
  Connecting connecting_;
  Posting posting_;
  Working working_;
  Granting granting_;
  Asking asking_;
  Stillness stillness_;
  std::vector<Action> actions_;
  uint32_t weights_ = 0;  ///< of all actions
  uint64_t steps_ = 0;
};

}  // namespace rnic::spin

/// \file
/// When the next segment may leave: pacing, and the hold after a mark on a window of one segment.
#pragma once

#include "base/time.hpp"

namespace rnic::tcp {

struct Pacing {
  bool on = false;       ///< the connection is paced
  bool gated = false;    ///< release_at counts: paced, or held for once
  bool waiting = false;  ///< something stood before the gate
  base::Now release_at{};
};

}  // namespace rnic::tcp

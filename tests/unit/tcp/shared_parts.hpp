// What the connections of a stack share, for tests of their parts without a stack.
#pragma once

#include "raw_peer.hpp"
#include "tcp/shared.hpp"

namespace rnic::testing {

struct SharedParts {
  explicit SharedParts(const tcp::Config& config = {})
      : shared(config, egress, kSecret, base::Now{}) {}

  static constexpr tcp::Secret kSecret{1, 2};

  CaptureEgress egress;
  tcp::Shared shared;
};

}  // namespace rnic::testing

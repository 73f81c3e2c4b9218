// What the connections of a stack share, for tests of their parts without a stack.
#pragma once

#include "raw_peer.hpp"
#include "tcp/shared.hpp"

namespace rnic::testing {

struct SharedParts {
  explicit SharedParts(const tcp::Config& of = {}) : shared(of, egress, kSecret, base::Now{}) {}

  /// The oldest segment that went out and was not looked at yet.
  Segment next() {
    if (egress.sent.empty()) {
      ADD_FAILURE() << "nothing was sent";
      return {};
    }
    Segment s = egress.sent.front();
    egress.sent.pop_front();
    return s;
  }

  static constexpr tcp::Secret kSecret{1, 2};

  CaptureEgress egress;
  tcp::Shared shared;
  // Of it:
  const tcp::Config& config = shared.config;
  tcp::Counters& counters = shared.counters;
  tcp::SegmentOut& out = shared.out;
  tcp::ReplyQueue& replies = shared.replies;
  tcp::SavedRecords& saved = shared.saved;
  tcp::Round& round = shared.round;
};

}  // namespace rnic::testing

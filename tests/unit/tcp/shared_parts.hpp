// What the connections of a stack share, for tests of their parts without a stack.
#pragma once

#include "raw_peer.hpp"
#include "tcp/shared.hpp"

namespace rnic::testing {

struct SharedParts {
  explicit SharedParts(const tcp::Config& of = {}) : shared(of, egress, kSecret, base::Now{}) {}

  // As of the egress.
  Segment next() { return egress.next(); }
  Segment expect(const Expected& expected, Caller caller = {}) {
    return egress.expect(expected, caller);
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

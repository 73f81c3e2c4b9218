/// \file
/// The state that the connections of one stack share.
#pragma once

#include <algorithm>
#include <array>
#include <vector>

#include "base/timer_wheel.hpp"
#include "tcp/challenge_acks.hpp"
#include "tcp/config.hpp"
#include "tcp/connection_list.hpp"
#include "tcp/counters.hpp"
#include "tcp/half_open.hpp"
#include "tcp/holdings.hpp"
#include "tcp/look_ahead.hpp"
#include "tcp/range_pool.hpp"
#include "tcp/record_queue.hpp"
#include "tcp/reply_queue.hpp"
#include "tcp/saved_records.hpp"
#include "tcp/segment_out.hpp"
#include "tcp/syn_terms.hpp"
#include "tcp/time_wait.hpp"

namespace rnic::tcp {

/// The new sub-ranges of a segment's text. There is room for as many gaps as a full set of ranges
/// leaves between and around its ranges.
using Gaps = std::array<base::Range, kMaxRanges + 1>;

/// The shared state outlives every connection.
struct Shared {
  Shared(const Config& with, Egress& egress, const Secret& secret, base::Now now)
      : config(with),
        wheel(now),
        out(egress, counters),
        records(with.max_records, with.max_connections, with.max_records_per_connection),
        ranges(range_sets_of(with)),
        saved(with.max_saved_octets),
        half_open(config, secret),
        challenges(with.challenge_ack_limit, with.challenge_ack_interval, counters),
        time_wait(config, secret, wheel, replies, challenges, counters),
        syn_terms(config, egress),
        scratch(kMaxRecordOctets) {}

  static constexpr uint32_t kMaxRecordOctets = 65536;
  /// A connection has a set of ranges for each direction.
  [[nodiscard]] static uint32_t range_sets_of(const Config& config) {
    return std::min(config.max_range_sets, 2 * config.max_connections);
  }

  /// Recounts what is taken of the pools. \param held the sums of what the connections hold
  void validate(const Holdings& held) const {
    wheel.validate();
    replies.validate();
    records.validate();
    RNIC_CHECK(held.records == records.live() && held.chunks == records.chunks_in_use());
    RNIC_CHECK(held.directories == records.directories_in_use());
    ranges.validate();
    RNIC_CHECK(held.range_sets == ranges.in_use());
    saved.validate();
    RNIC_CHECK(held.saved_blocks == saved.blocks_in_use());
    RNIC_CHECK(held.in_round == round.validate() && held.over == closed.validate());
    half_open.validate();
    RNIC_CHECK(held.half_open == half_open.live());
    challenges.validate();
    time_wait.validate();
  }

  /// Answers a segment that belongs to no connection (RFC 9293 s.3.5.2).
  void reset_reply(const Segment& segment) {
    ++counters.no_connection;
    replies.reset(segment);
  }

  const Config config;
  Counters counters;
  base::TimerWheel wheel;
  SegmentOut out;
  ReplyQueue replies;
  RecordPool records;
  RangePool ranges;
  SavedRecords saved;
  Round round;
  LookAhead ahead;  ///< of the turn to send that is under way
  ConnectionList closed;  ///< connections that have ended and wait for finish()
  HalfOpen half_open;
  ChallengeAcks challenges;
  TimeWait time_wait;
  const SynTerms syn_terms;
  std::vector<uint8_t> scratch;  ///< room for one record, used within a call
  Gaps gaps;                     ///< gaps of the segment that is being processed
  bool bursts = true;            ///< see Stack::set_bursts()
};

}  // namespace rnic::tcp

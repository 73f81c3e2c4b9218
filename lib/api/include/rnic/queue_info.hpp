/// \file
/// Reports of queues about themselves, and counters besides those of layers (Device::counters()).
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "rnic/fault.hpp"

namespace rnic {

/// The receives that one queue pair has taken from a shared receive queue. They show which queue
/// pair takes more than its share (RFC 5042 section 6.4.3.1).
struct SrqUse {
  uint32_t qp = 0;           ///< QueuePair::number()
  uint64_t taken = 0;        ///< receives, since the queue pair was made
  uint32_t in_progress = 0;  ///< those of `taken` that are begun and not delivered now
};

struct CqInfo {
  uint32_t depth = 0;    ///< completions that it holds
  uint32_t waiting = 0;  ///< completions that nobody has polled
  /// Completions that can come at once: the sum of the depths of all send queues, receive queues
  /// and shared receive queues that complete there. If it is not above `depth`, the queue never
  /// overruns (RFC 5042 section 6.4.3.2).
  uint64_t demand = 0;
  uint32_t users = 0;    ///< send and receive queues that complete there
  bool overrun = false;  ///< it is in error: see event::CompletionOverrun
  // Counts since the queue was made.
  uint64_t completions = 0;  ///< completions added
  uint64_t failed = 0;       ///< completions with an error status, lost ones included
  uint64_t lost = 0;         ///< completions that found the queue full
};

/// Counts of a queue pair's work since it was made, over all its connections
/// (QueuePairInfo::counters; QueuePairInfo::sends_completed counts the sends).
struct QueuePairCounters {
  uint64_t connections = 0;          ///< connections that it was given, failed start-ups included
  uint64_t receives = 0;             ///< receives that completed with a message
  uint64_t octets_received = 0;      ///< payload of these
  uint64_t flushed = 0;              ///< requests of both queues that ended with Flushed
  uint64_t failed = 0;               ///< requests that ended with another error
  uint64_t terminates_sent = 0;      ///< Terminate messages (RFC 5040 s.4.8)
  uint64_t terminates_received = 0;  ///< Terminate messages of peers
};

/// Terminate messages of one code (Device::terminates()).
struct TerminateCount {
  /// Nothing: the sum over all codes beyond the number that a device tells apart.
  std::optional<FaultCode> code;
  uint64_t sent = 0;
  uint64_t received = 0;
};

struct SrqInfo {
  uint32_t depth = 0;
  uint32_t max_sges = 0;
  uint32_t posted = 0;      ///< receives that nobody has taken
  uint32_t taken = 0;       ///< receives in progress on some queue pair
  uint32_t limit = 0;       ///< SharedReceiveQueue::arm_limit(); 0: not armed
  uint32_t high_water = 0;  ///< SharedReceiveQueue::arm_high_water(); 0: not armed
  std::vector<SrqUse> queue_pairs;
};

}  // namespace rnic

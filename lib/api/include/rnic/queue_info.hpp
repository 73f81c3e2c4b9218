/// \file
/// What queues tell of themselves.
#pragma once

#include <cstdint>
#include <vector>

namespace rnic {

/// What one queue pair has taken from a shared receive queue: who takes more than its share shows
/// here (RFC 5042 section 6.4.3.1).
struct SrqUse {
  uint32_t qp = 0;           ///< QueuePair::number()
  uint64_t taken = 0;        ///< receives, since the queue pair was made
  uint32_t in_progress = 0;  ///< of these, begun and not delivered now
};

struct CqInfo {
  uint32_t depth = 0;    ///< completions that it holds
  uint32_t waiting = 0;  ///< of these, how many nobody has polled
  /// Completions that can come at once: the depths of all send queues, receive queues and shared
  /// receive queues that complete there. Not above `depth`, it never overruns (RFC 5042 section
  /// 6.4.3.2).
  uint64_t demand = 0;
  uint32_t users = 0;    ///< send and receive queues that complete there
  bool overrun = false;  ///< it is in error: see event::CompletionOverrun
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

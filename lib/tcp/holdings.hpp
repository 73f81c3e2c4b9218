/// \file
/// The parts of a stack's pools and lists that its connections hold.
#pragma once

#include <cstdint>

namespace rnic::tcp {

/// Sums over connections, which Shared::validate() compares with its pools and lists.
struct Holdings {
  uint64_t records = 0;      ///< of RecordPool
  uint64_t chunks = 0;       ///< of RecordPool
  uint32_t directories = 0;  ///< of RecordPool
  uint32_t range_sets = 0;   ///< of RangePool
  uint64_t saved_blocks = 0;
  uint32_t half_open = 0;
  uint32_t in_round = 0;
  uint32_t over = 0;  ///< connections that wait for finish()
};

}  // namespace rnic::tcp

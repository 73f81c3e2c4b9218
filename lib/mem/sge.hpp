/// \file
/// One piece of a scatter/gather list.
#pragma once

#include <cstdint>

namespace rnic::mem {

/// One piece of local memory; `address` is the TO inside the region that `stag` names.
struct Sge {
  uint64_t address = 0;
  uint32_t length = 0;
  uint32_t stag = 0;
};

}  // namespace rnic::mem

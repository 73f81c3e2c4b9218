/// \file
/// What a part of the tree asks the machine for at construction, and which key of the configuration
/// makes it so.
#pragma once

#include <cstdint>
#include <vector>

namespace rnic::base {

struct MemoryUse {
  const char* key;  ///< as docs/settings.md has it
  uint64_t octets;
};

/// Each key once, or several times: they add up.
using MemoryUses = std::vector<MemoryUse>;

}  // namespace rnic::base

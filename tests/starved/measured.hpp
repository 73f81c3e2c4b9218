/// \file
/// Something done in a process of its own, under a limit of memory, and what it took.
#pragma once

#include <cstdint>
#include <functional>
#include <string>

namespace rnic::starved {

/// What the kernel counts of a process, in octets.
struct Footprint {
  uint64_t addresses = 0;  ///< mapped
  uint64_t resident = 0;   ///< backed
};

struct Spent {
  bool alive = false;      ///< it ended by itself, with status 0
  std::string said;        ///< what it has returned; of one that died, how, and its last words
  double cpu_seconds = 0;  ///< in user and system mode
  Footprint grown;         ///< to the most that it was
};

/// \param before what the child does first, unlimited and unmeasured
/// \param address_space most that the process may map beyond what it has; UINT64_MAX: no limit
[[nodiscard]] Spent in_child(uint64_t address_space, const std::function<std::string()>& body,
                             const std::function<void()>& before = {});

/// From here on the process may map so much more than it has.
void limit_addresses(uint64_t more);

}  // namespace rnic::starved

/// \file
/// What happened in worlds, in sum.
#pragma once

#include <cstdint>

namespace rnic::simulation {

/// X(name, title, must have fired in 500 seeds)
#define RNIC_SIM_TOTALS(X)                     \
  X(worlds, "worlds", true)                    \
  X(messages, "messages", true)                \
  X(octets, "octets", true)                    \
  X(frames, "frames", true)                    \
  X(drops, "drops", true)                      \
  X(reordered, "reordered", true)              \
  X(duplicated, "duplicated", true)            \
  X(corrupted, "corrupted", true)              \
  X(placed_early, "placed out of order", true) \
  X(held, "held", true)                        \
  X(cut, "cut by middlebox", true)             \
  X(resegmented, "resegmented", true)          \
  X(crc_drops, "CRC drops", true)              \
  X(suspected, "drops on suspicion", true)     \
  X(lost, "connections lost by right", false)  \
  X(terminates, "Terminates", true)            \
  X(waited, "waits for a receive", true)       \
  X(retransmissions, "retransmissions", true)  \
  X(timeouts, "time-outs", true)               \
  X(recoveries, "fast recoveries", true)       \
  X(joined, "joined by middlebox", true)       \
  X(probes, "window probes", true)             \
  X(forged, "forged segments", true)           \
  X(challenges, "challenge ACKs", true)        \
  X(paws, "old timestamps rejected", true)     \
  X(marked, "marked CE", true)                 \
  X(too_big, "too big for the path", true)     \
  X(icmp, "ICMP messages", true)               \
  X(mtu_reductions, "smaller path MTUs", true) \
  X(black_holes, "black holes found", true)    \
  X(broken, "connections broken", true)        \
  X(refused, "calls of the system refused", true)

struct Totals {
#define RNIC_SIM_FIELD(name, title, must) uint64_t name = 0;
  RNIC_SIM_TOTALS(RNIC_SIM_FIELD)
#undef RNIC_SIM_FIELD

  template <typename F>
  void for_each(F&& f) {
#define RNIC_SIM_VISIT(name, title, must) f(title, name, must);
    RNIC_SIM_TOTALS(RNIC_SIM_VISIT)
#undef RNIC_SIM_VISIT
  }

  void add(const Totals& other) {
#define RNIC_SIM_ADD(name, title, must) name += other.name;
    RNIC_SIM_TOTALS(RNIC_SIM_ADD)
#undef RNIC_SIM_ADD
  }
};

}  // namespace rnic::simulation

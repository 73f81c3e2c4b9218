/// \file
/// Counters as X-macros: one list per layer gives the struct, the names, units and help texts.
///
/// A list is a macro `LIST(X)` whose rows are `X(name, "unit", "help")`; see `tcp/counters.hpp`.
///
/// Counters are plain integers of one worker; other threads read snapshots.
#pragma once

#include <cstdint>

namespace rnic::base {

/// One row of a counter listing.
struct CounterRow {
  const char* name;
  const char* unit;
  const char* help;
  uint64_t value;
};

}  // namespace rnic::base

#define RNIC_COUNTER_FIELD(name, unit, help) uint64_t name = 0;
#define RNIC_COUNTER_VISIT(name, unit, help) \
  visit(::rnic::base::CounterRow{#name, unit, help, name});

#define RNIC_DEFINE_COUNTERS(Type, LIST)   \
  struct Type {                            \
    LIST(RNIC_COUNTER_FIELD)               \
    template <typename Visitor>            \
    void for_each(Visitor&& visit) const { \
      LIST(RNIC_COUNTER_VISIT)             \
    }                                      \
  };

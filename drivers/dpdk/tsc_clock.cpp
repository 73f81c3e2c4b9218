#include "dpdk/tsc_clock.hpp"

#include <rte_cycles.h>

#include "dpdk/eal.hpp"

namespace rnic::dpdk {

uint64_t TscClock::hertz() { return rte_get_tsc_hz(); }

Result<TscClock> TscClock::create() {
  const uint64_t hertz = Eal::started() ? rte_get_tsc_hz() : 0;
  if (hertz == 0) {
    return base::fail(ErrorCode::WrongState, "the TSC's frequency is not known: start DPDK first");
  }
  return TscClock(hertz);
}

}  // namespace rnic::dpdk

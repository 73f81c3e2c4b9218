/// \file
/// Tells ThreadSanitizer of the order that DPDK's rings and pools give to two threads: DPDK's
/// libraries are not built with it, so it does not see their atomics. In other builds these
/// functions do nothing. Private to the driver.
#pragma once

#if defined(__SANITIZE_THREAD__)
#include <sanitizer/tsan_interface.h>
#endif

struct rte_mbuf;

namespace rnic::dpdk {

/// Called before an mbuf goes into a ring or a pool: everything done with it is visible to the
/// taker.
inline void hand_over([[maybe_unused]] rte_mbuf* mbuf) {
#if defined(__SANITIZE_THREAD__)
  __tsan_release(mbuf);
#endif
}

/// Called after an mbuf was taken out.
inline void take_over([[maybe_unused]] rte_mbuf* mbuf) {
#if defined(__SANITIZE_THREAD__)
  __tsan_acquire(mbuf);
#endif
}

}  // namespace rnic::dpdk

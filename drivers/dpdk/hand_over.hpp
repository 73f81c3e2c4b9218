/// \file
/// Tells ThreadSanitizer of the order that DPDK's rings and pools give to two threads: their
/// libraries are not built with it, so it does not see the atomics in them. Other builds: nothing.
/// Private to the driver.
#pragma once

#if defined(__SANITIZE_THREAD__)
#include <sanitizer/tsan_interface.h>
#endif

struct rte_mbuf;

namespace rnic::dpdk {

/// Before an mbuf goes into a ring or a pool: what was done with it is done.
inline void hand_over([[maybe_unused]] rte_mbuf* mbuf) {
#if defined(__SANITIZE_THREAD__)
  __tsan_release(mbuf);
#endif
}

/// Behind taking one out.
inline void take_over([[maybe_unused]] rte_mbuf* mbuf) {
#if defined(__SANITIZE_THREAD__)
  __tsan_acquire(mbuf);
#endif
}

}  // namespace rnic::dpdk

/// \file
/// Tells ThreadSanitizer of the order that DPDK's rings and pools give to two threads: their
/// libraries are not built with it, so it does not see the atomics in them. Other builds: nothing.
/// Private to the driver.
#pragma once

#include <rte_mbuf.h>

#if defined(__SANITIZE_THREAD__)
#include <sanitizer/tsan_interface.h>
#endif

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

/// rte_pktmbuf_alloc_bulk(), which writes to an mbuf before anybody could take it over. \return all
/// of them, or none
inline bool allocate_mbufs(rte_mempool* pool, rte_mbuf** mbufs, unsigned count) {
  if (rte_mempool_get_bulk(pool, reinterpret_cast<void**>(mbufs), count) != 0) return false;
  for (unsigned i = 0; i < count; ++i) {
    take_over(mbufs[i]);
    rte_pktmbuf_reset(mbufs[i]);
  }
  return true;
}

}  // namespace rnic::dpdk

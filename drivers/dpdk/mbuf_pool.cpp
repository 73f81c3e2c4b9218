#include "dpdk/mbuf_pool.hpp"

#include <rte_errno.h>
#include <rte_mbuf.h>
#include <rte_mempool.h>

#include <algorithm>
#include <atomic>
#include <string>

#include "base/log.hpp"

namespace rnic::dpdk {

std::string unique_name(char kind) {
  static std::atomic<uint32_t> next{0};
  return std::string("rnic_") + kind + std::to_string(next.fetch_add(1));
}

void PoolDeleter::operator()(rte_mempool* pool) const {
  if (const uint32_t out = rings_keep ? 0 : rte_mempool_in_use_count(pool); out != 0) {
    base::log(base::LogLevel::Warning, "dpdk", [out] {
      return std::to_string(out) + " buffers were not returned before their port was closed";
    });
  }
  rte_mempool_free(pool);
}

base::Result<MbufPool> make_pool(uint32_t count, uint32_t frame_octets, bool rings_keep) {
  constexpr uint32_t kLine = 64;
  const uint32_t room = RTE_PKTMBUF_HEADROOM + (frame_octets + kLine - 1) / kLine * kLine;
  if (room > UINT16_MAX) {
    return base::fail(base::Errc::InvalidArgument, "frames of " + std::to_string(frame_octets) +
                                                       " octets do not fit one DPDK buffer");
  }
  // A thread's cache may hold one and a half times its size; the pool must not drain into caches.
  const uint32_t cache = std::min<uint32_t>(256, count / 8);
  rte_mempool* pool = rte_pktmbuf_pool_create(unique_name('p').c_str(), count, cache, 0,
                                              static_cast<uint16_t>(room), SOCKET_ID_ANY);
  if (pool == nullptr) {
    return base::fail(base::Errc::ResourceExhausted,
                      "no memory for " + std::to_string(count) + " buffers of " +
                          std::to_string(room) + " octets (" + rte_strerror(rte_errno) +
                          "): raise DPDK's memory or lower the pool size");
  }
  return MbufPool(pool, PoolDeleter{rings_keep});
}

}  // namespace rnic::dpdk

#include "dpdk/mbuf_pool.hpp"

#include <rte_errno.h>
#include <rte_lcore.h>
#include <rte_malloc.h>
#include <rte_mbuf.h>
#include <rte_memory.h>
#include <rte_mempool.h>

#include <algorithm>
#include <atomic>
#include <string>

#include "base/log.hpp"
#include "dpdk/eal.hpp"
#include "dpdk/hand_over.hpp"

namespace rnic::dpdk {

std::string unique_name(char kind) {
  static std::atomic<uint32_t> next{0};
  return std::string("rnic_") + kind + std::to_string(next.fetch_add(1));
}

namespace {

/// What rte_pktmbuf_reset() does to the first line of an mbuf, but for what is right in a pool
/// anyhow: it is one segment, and nobody else has it. The second line, with the chain and the
/// lengths for offloads, is not touched: in a pool there is no chain, and who asks for an offload
/// sets its lengths.
void begin(rte_mbuf& mbuf) {
  mbuf.data_off = RTE_PKTMBUF_HEADROOM;
  mbuf.port = RTE_MBUF_PORT_INVALID;
  mbuf.ol_flags = 0;
  mbuf.packet_type = 0;
  mbuf.pkt_len = 0;
  mbuf.data_len = 0;
  mbuf.vlan_tci = 0;
  mbuf.vlan_tci_outer = 0;
}

/// It goes back into its pool as it is: nobody else holds it, and it is no chain.
bool is_plain(const rte_mbuf& mbuf) {
  return rte_mbuf_refcnt_read(&mbuf) == 1 && mbuf.nb_segs == 1 && RTE_MBUF_DIRECT(&mbuf);
}

}  // namespace

void free_mbufs(rte_mbuf** mbufs, unsigned count) {
  rte_mempool* const pool = mbufs[0]->pool;
  bool all_plain = true;
  for (unsigned i = 0; i < count; ++i) {
    hand_over(mbufs[i]);
    all_plain = all_plain && mbufs[i]->pool == pool && is_plain(*mbufs[i]);
  }
  if (all_plain) [[likely]] {
    rte_mempool_put_bulk(pool, reinterpret_cast<void**>(mbufs), count);
  } else {
    rte_pktmbuf_free_bulk(mbufs, count);  // sorts mbufs of several pools itself
  }
}

bool allocate_mbufs(rte_mempool* pool, rte_mbuf** mbufs, unsigned count) {
  if (rte_mempool_get_bulk(pool, reinterpret_cast<void**>(mbufs), count) != 0) return false;
  for (unsigned i = 0; i < count; ++i) {
    take_over(mbufs[i]);
    begin(*mbufs[i]);
  }
  return true;
}

void PoolDeleter::operator()(rte_mempool* pool) const {
  if (const uint32_t out = rings_keep ? 0 : rte_mempool_in_use_count(pool); out != 0) {
    base::log(base::LogLevel::Warning, "dpdk", [out] {
      return std::to_string(out) + " buffers were not returned before their port was closed";
    });
  }
  rte_mempool_free(pool);
}

std::string memory_left() {
  uint64_t left = 0;
  uint64_t all = 0;
  for (unsigned i = 0; i < rte_socket_count(); ++i) {
    rte_malloc_socket_stats stats{};
    if (rte_malloc_get_socket_stats(rte_socket_id_by_idx(i), &stats) != 0) continue;
    left += stats.heap_freesz_bytes;
    all += stats.heap_totalsz_bytes;
  }
  return std::to_string(left >> 20) + " MB are left of the " + std::to_string(all >> 20) +
         " MB that DPDK has (eal.memory_mb)";
}

namespace {

/// Octets that a pool takes: no buffer crosses a page if it fits into one.
uint64_t pool_octets(uint64_t count, uint32_t room) {
  const uint64_t page = Eal::on_hugepages() ? RTE_PGSIZE_2M : RTE_PGSIZE_4K;
  const uint64_t each = rte_mempool_calc_obj_size(sizeof(rte_mbuf) + room, 0, nullptr);
  const uint64_t in_page = page / each;
  return in_page != 0 ? (count + in_page - 1) / in_page * page
                      : count * ((each + page - 1) / page) * page;
}

}  // namespace

Result<MbufPool> make_pool(uint32_t count, uint32_t frame_octets, bool rings_keep) {
  constexpr uint32_t kLine = 64;
  const uint32_t room = RTE_PKTMBUF_HEADROOM + (frame_octets + kLine - 1) / kLine * kLine;
  if (room > UINT16_MAX) {
    return base::fail(ErrorCode::InvalidArgument, "frames of " + std::to_string(frame_octets) +
                                                      " octets do not fit one DPDK buffer");
  }
  // A thread's cache may hold one and a half times its size; the pool must not drain into caches.
  // What is moved at once between a cache and the pool keeps a frame waiting meanwhile; but where
  // a cache does not hold what a turn sends, each turn moves some of it.
  const uint32_t cache = std::min<uint32_t>(128, count / 8);
  rte_mempool* pool = rte_pktmbuf_pool_create(unique_name('p').c_str(), count, cache, 0,
                                              static_cast<uint16_t>(room), SOCKET_ID_ANY);
  if (pool == nullptr) {
    const char* reason = rte_strerror(rte_errno);
    return base::fail(ErrorCode::ResourceExhausted,
                      "no memory for " + std::to_string(count) + " buffers of " +
                          std::to_string(room) + " octets (" + reason +
                          "): " + std::to_string((pool_octets(count, room) >> 20) + 1) +
                          " MB are asked for, and " + memory_left() +
                          ": raise that, or lower the size of the ring");
  }
  return MbufPool(pool, PoolDeleter{rings_keep});
}

}  // namespace rnic::dpdk

/// \file
/// Pools of mbufs; private to the driver.
#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include "base/fail.hpp"

struct rte_mbuf;
struct rte_mempool;

namespace rnic::dpdk {

/// Frees the pool, and logs a warning if buffers of it are still in use.
struct PoolDeleter {
  /// The device's driver does not give back the buffers in its rings when it is closed: no warning.
  bool rings_keep = false;

  void operator()(rte_mempool* pool) const;
};
using MbufPool = std::unique_ptr<rte_mempool, PoolDeleter>;

/// A pool of `count` mbufs with room for frames of `frame_octets` in one segment.
/// \param rings_keep see PoolDeleter
[[nodiscard]] Result<MbufPool> make_pool(uint32_t count, uint32_t frame_octets,
                                         bool rings_keep = false);

/// rte_pktmbuf_alloc_bulk(), which writes to an mbuf before anybody could take it over
/// (hand_over.hpp). \return all of them, or none
[[nodiscard]] bool allocate_mbufs(rte_mempool* pool, rte_mbuf** mbufs, unsigned count);

/// rte_pktmbuf_free_bulk() of at least one mbuf, which hands them over, too.
void free_mbufs(rte_mbuf** mbufs, unsigned count);

/// A text such as "180 MB are left of the 256 MB that DPDK has (eal.memory_mb)".
[[nodiscard]] std::string memory_left();

/// A name that no other object of this process has: "rnic_<kind><n>".
[[nodiscard]] std::string unique_name(char kind);

}  // namespace rnic::dpdk

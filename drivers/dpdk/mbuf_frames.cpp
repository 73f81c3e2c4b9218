#include "dpdk/mbuf_frames.hpp"

#include <algorithm>

#include "dpdk/hand_over.hpp"
#include "dpdk/mbuf_pool.hpp"

namespace rnic::dpdk {

namespace {

constexpr size_t kChunk = 64;  // mbuf pointers on the stack at a time

}  // namespace

bool allocate_frames(rte_mempool* pool, std::span<port::Packet> out,
                     port::PortCounters& counters) {
  rte_mbuf* mbufs[kChunk];
  for (size_t done = 0; done < out.size();) {
    const size_t n = std::min(out.size() - done, kChunk);
    if (!allocate_mbufs(pool, mbufs, static_cast<unsigned>(n))) {
      ++counters.alloc_failed;
      free_frames(out.first(done));
      return false;
    }
    for (size_t i = 0; i < n; ++i) {
      port::Packet& packet = out[done + i];
      show(packet, mbufs[i]);
      packet.length = 0;
      packet.ip_checksum = packet.l4_checksum = port::Checksum::Unknown;
    }
    done += n;
  }
  return true;
}

void free_frames(std::span<const port::Packet> packets) {
  rte_mbuf* mbufs[kChunk];
  while (!packets.empty()) {
    const size_t n = std::min(packets.size(), kChunk);
    for (size_t i = 0; i < n; ++i) mbufs[i] = to_mbuf(packets[i].buffer);
    free_mbufs(mbufs, static_cast<unsigned>(n));
    packets = packets.subspan(n);
  }
}

}  // namespace rnic::dpdk

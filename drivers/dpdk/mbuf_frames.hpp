/// \file
/// Frames that are mbufs, as all ports of this driver have them; private to the driver.
#pragma once

#include <rte_mbuf.h>
#include <rte_prefetch.h>

#include <cstdint>
#include <span>

#include "port/port.hpp"

namespace rnic::dpdk {

inline port::Buffer* to_buffer(rte_mbuf* mbuf) { return reinterpret_cast<port::Buffer*>(mbuf); }
inline rte_mbuf* to_mbuf(port::Buffer* buffer) { return reinterpret_cast<rte_mbuf*>(buffer); }

/// A received frame is going to be read, and its buffer given back. The mbuf says where the octets
/// are, and another core has written both: so their first lines are fetched together with it, from
/// where our pools have them. It is a hint, which need not be right.
inline void expect(const rte_mbuf* mbuf) {
  const auto* header = reinterpret_cast<const uint8_t*>(mbuf);
  const uint8_t* octets = header + sizeof(rte_mbuf) + RTE_PKTMBUF_HEADROOM;
  rte_prefetch0(header);
  rte_prefetch0(octets);
  rte_prefetch0(octets + RTE_CACHE_LINE_SIZE);
  rte_prefetch0(octets + 2 * RTE_CACHE_LINE_SIZE);
}

/// The octets of a received mbuf, which is one segment, as a packet. Checksums are not set.
inline void show(port::Packet& packet, rte_mbuf* mbuf) {
  packet.data = rte_pktmbuf_mtod(mbuf, uint8_t*);
  packet.length = mbuf->data_len;
  packet.room = static_cast<uint32_t>(mbuf->buf_len) - mbuf->data_off;
  packet.buffer = to_buffer(mbuf);
}

/// Tells the mbuf of a packet where its octets are.
inline void set_octets(rte_mbuf* mbuf, const port::Packet& packet) {
  mbuf->data_off = static_cast<uint16_t>(packet.data - static_cast<uint8_t*>(mbuf->buf_addr));
  mbuf->data_len = static_cast<uint16_t>(packet.length);
  mbuf->pkt_len = packet.length;
  mbuf->ol_flags = 0;
}

/// See port::Port::alloc().
[[nodiscard]] bool allocate_frames(rte_mempool* pool, std::span<port::Packet> out,
                                   port::PortCounters& counters);
/// See port::Port::free().
void free_frames(std::span<const port::Packet> packets);

}  // namespace rnic::dpdk

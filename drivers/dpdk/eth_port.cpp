#include "dpdk/eth_port.hpp"

#include <rte_ethdev.h>
#include <rte_mbuf.h>
#include <rte_prefetch.h>

#include <algorithm>
#include <cstring>
#include <string>
#include <utility>

#include "base/log.hpp"
#include "dpdk/hand_over.hpp"
#include "dpdk/interrupt_thread.hpp"
#include "dpdk/log_capture.hpp"
#include "dpdk/mbuf_pool.hpp"
#include "offload/offload.hpp"

namespace rnic::dpdk {
namespace {

constexpr uint32_t kChunk = 64;  // mbuf pointers on the stack at a time

port::Buffer* to_buffer(rte_mbuf* mbuf) { return reinterpret_cast<port::Buffer*>(mbuf); }
rte_mbuf* to_mbuf(port::Buffer* buffer) { return reinterpret_cast<rte_mbuf*>(buffer); }

port::Checksum verdict(uint64_t flags, uint64_t mask, uint64_t good, uint64_t bad) {
  if ((flags & mask) == good) return port::Checksum::Good;
  if ((flags & mask) == bad) return port::Checksum::Bad;
  // Both bits set means that the sender made no checksum, but the octets are intact (virtio within
  // one machine).
  if ((flags & mask) == mask) return port::Checksum::Good;
  return port::Checksum::Unknown;
}

void fill_verdicts(port::Packet& packet, const rte_mbuf* mbuf, port::ChecksumMode mode) {
  switch (mode) {
    case port::ChecksumMode::Trusted:
      packet.ip_checksum = packet.l4_checksum = port::Checksum::Good;
      break;
    case port::ChecksumMode::Offload:
      packet.ip_checksum = verdict(mbuf->ol_flags, RTE_MBUF_F_RX_IP_CKSUM_MASK,
                                   RTE_MBUF_F_RX_IP_CKSUM_GOOD, RTE_MBUF_F_RX_IP_CKSUM_BAD);
      packet.l4_checksum = verdict(mbuf->ol_flags, RTE_MBUF_F_RX_L4_CKSUM_MASK,
                                   RTE_MBUF_F_RX_L4_CKSUM_GOOD, RTE_MBUF_F_RX_L4_CKSUM_BAD);
      break;
    case port::ChecksumMode::Software:
      packet.ip_checksum = packet.l4_checksum = port::Checksum::Unknown;
      break;
  }
}

}  // namespace

void close_device(uint16_t id, bool unplug) {
  rte_eth_dev_info facts{};
  rte_device* device = nullptr;
  bool events = false;
  if (rte_eth_dev_info_get(id, &facts) == 0) {
    device = facts.device;
    // net_memif takes a connection down in the interrupt thread when the peer hangs up, and in our
    // thread when it is closed; both at once would free its memory twice. So hang-ups that have
    // come are served before and after the close.
    events = facts.driver_name != nullptr && std::strcmp(facts.driver_name, "net_memif") == 0;
  }
  LogCapture capture;  // some devices log what they do not support while they close
  if (events) drain_interrupt_thread();
  rte_eth_dev_stop(id);
  rte_eth_dev_close(id);
  if (unplug && device != nullptr) rte_dev_remove(device);
  if (events) drain_interrupt_thread();
}

EthPort::EthPort(EthPortSetup setup)
    : memory_(std::move(setup.memory)),
      device_(std::move(setup.device)),
      ring_(std::move(setup.ring)),
      tap_(std::move(setup.tap)),
      sends_to_tap_(setup.sends_to_tap),
      gate_(std::move(setup.gate)),
      wakes_us_(setup.wakes_us),
      wakes_peer_(setup.wakes_peer),
      info_(std::move(setup.info)),
      pool_(setup.pool),
      id_(device_->id()),
      queue_(info_.spread.queue) {}

rte_mbuf* EthPort::make_contiguous(rte_mbuf* mbuf) {
  if (rte_pktmbuf_linearize(mbuf) == 0) {
    ++counters_.rx_linearised;
    return mbuf;
  }
  // The first segment has too little room, but our own mbufs have room for a whole frame.
  rte_mbuf* whole = rte_pktmbuf_alloc(pool_);
  if (whole == nullptr) {
    ++counters_.alloc_failed;
  } else if (char* to = rte_pktmbuf_append(whole, 0);
             to != nullptr && rte_pktmbuf_tailroom(whole) >= mbuf->pkt_len) {
    for (const rte_mbuf* part = mbuf; part != nullptr; part = part->next) {
      rte_memcpy(to, rte_pktmbuf_mtod(part, const char*), part->data_len);
      to += part->data_len;
    }
    whole->data_len = static_cast<uint16_t>(mbuf->pkt_len);
    whole->pkt_len = mbuf->pkt_len;
    whole->ol_flags = mbuf->ol_flags;
    rte_pktmbuf_free(mbuf);
    ++counters_.rx_linearised;
    return whole;
  } else {
    rte_pktmbuf_free(whole);
  }
  ++counters_.rx_dropped;
  rte_pktmbuf_free(mbuf);
  return nullptr;
}

uint16_t EthPort::receive(rte_mbuf** mbufs, uint16_t count) {
  const BurstGate::Pass pass(gate_.get());
  if (gate_ != nullptr && device_->is_stopped()) return 0;
  const uint16_t got = rte_eth_rx_burst(id_, queue_, mbufs, count);
  for (uint16_t i = 0; i < got; ++i) take_over(mbufs[i]);
  return got;
}

uint16_t EthPort::transmit(rte_mbuf** mbufs, uint16_t count) {
  for (uint16_t i = 0; i < count; ++i) hand_over(mbufs[i]);
  const BurstGate::Pass pass(gate_.get());
  if (gate_ != nullptr && device_->is_stopped()) return 0;
  return rte_eth_tx_burst(id_, queue_, mbufs, count);
}

uint32_t EthPort::rx_burst(std::span<port::Packet> out, base::Now) {
  rte_mbuf* mbufs[kChunk];
  const auto want = static_cast<uint16_t>(std::min<size_t>(out.size(), kChunk));
  const uint16_t got = receive(mbufs, want);
  for (uint16_t i = 0; i < got; ++i) rte_prefetch0(rte_pktmbuf_mtod(mbufs[i], void*));
  uint32_t count = 0;
  for (uint16_t i = 0; i < got; ++i) {
    rte_mbuf* mbuf = mbufs[i];
    if (mbuf->nb_segs > 1) [[unlikely]] {
      mbuf = make_contiguous(mbuf);
      if (mbuf == nullptr) continue;
    }
    port::Packet& packet = out[count++];
    packet.data = rte_pktmbuf_mtod(mbuf, uint8_t*);
    packet.length = mbuf->data_len;
    packet.room = static_cast<uint32_t>(mbuf->buf_len) - mbuf->data_off;
    packet.buffer = to_buffer(mbuf);
    fill_verdicts(packet, mbuf, info_.checksum);
    counters_.rx_octets += packet.length;
  }
  counters_.rx_frames += count;
  return count;
}

bool EthPort::alloc(std::span<port::Packet> out) {
  rte_mbuf* mbufs[kChunk];
  for (size_t done = 0; done < out.size();) {
    const size_t n = std::min<size_t>(out.size() - done, kChunk);
    if (!allocate_mbufs(pool_, mbufs, static_cast<unsigned>(n))) {
      ++counters_.alloc_failed;
      free(out.first(done));
      return false;
    }
    for (size_t i = 0; i < n; ++i) {
      port::Packet& packet = out[done + i];
      packet.data = rte_pktmbuf_mtod(mbufs[i], uint8_t*);
      packet.length = 0;
      packet.room = static_cast<uint32_t>(mbufs[i]->buf_len) - mbufs[i]->data_off;
      packet.buffer = to_buffer(mbufs[i]);
      packet.ip_checksum = packet.l4_checksum = port::Checksum::Unknown;
    }
    done += n;
  }
  return true;
}

void EthPort::prepare(port::Packet& packet, rte_mbuf* mbuf) const {
  mbuf->data_off = static_cast<uint16_t>(packet.data - static_cast<uint8_t*>(mbuf->buf_addr));
  mbuf->data_len = static_cast<uint16_t>(packet.length);
  mbuf->pkt_len = packet.length;
  mbuf->ol_flags = 0;
  const bool open =
      packet.ip_checksum == port::Checksum::Open || packet.l4_checksum == port::Checksum::Open;
  if (!open || info_.checksum == port::ChecksumMode::Trusted) return;
  if (info_.checksum == port::ChecksumMode::Software) {
    offload::complete_checksums(packet);
    return;
  }
  const base::ByteSpan frame{packet.data, packet.length};
  const auto ip = offload::locate_ip(frame);
  if (!ip) return;
  mbuf->l2_len = ip->ip;
  mbuf->l3_len = ip->l4 - ip->ip;
  mbuf->ol_flags = ip->v4 ? RTE_MBUF_F_TX_IPV4 : RTE_MBUF_F_TX_IPV6;
  if (packet.ip_checksum == port::Checksum::Open) offload::write_ip_checksum(frame, *ip);
  if (const auto tcp = offload::locate_tcp(frame);
      tcp && packet.l4_checksum == port::Checksum::Open) {
    mbuf->ol_flags |= RTE_MBUF_F_TX_TCP_CKSUM;
    mbuf->l4_len = tcp->payload - tcp->tcp;
    offload::write_tcp_pseudo_sum(frame, *tcp);
  }
}

void EthPort::watch(size_t offered, uint32_t taken, base::Now now) {
  bool waiting = taken < offered;
  bool took = taken != 0;
  if (ring_ != nullptr) {
    const PacketRing::Look seen = ring_->look(taken, now);
    waiting = waiting || seen.waiting || seen.down;
    took = seen.left && !seen.down;  // a link that is down loses the frames that it takes
    counters_.tx_discarded += seen.dropped;
    if (seen.dropped != 0 && !discards_told_) {
      discards_told_ = true;
      base::log(base::LogLevel::Warning, "dpdk", [&] {
        return info_.name + ": the kernel refuses a frame of " + std::to_string(seen.longest) +
               " octets: it is dropped, as others will be (port.tx_discarded); has the other "
               "end of the link a smaller MTU?";
      });
    }
  }
  switch (watch_.look(waiting, took, now)) {
    case TransmitWatch::News::None: break;
    case TransmitWatch::News::Stalled:
      ++counters_.tx_stalled;
      base::log(base::LogLevel::Warning, "dpdk", [this] {
        return info_.name + ": the device has taken no frame for a second; is its link up?";
      });
      break;
    case TransmitWatch::News::GoesOn:
      base::log(base::LogLevel::Warning, "dpdk",
                [this] { return info_.name + ": frames are taken again"; });
      break;
  }
}

uint32_t EthPort::send(std::span<port::Packet> packets) {
  rte_mbuf* mbufs[kChunk];
  uint32_t total = 0;
  while (total < packets.size()) {
    const size_t n = std::min<size_t>(packets.size() - total, kChunk);
    for (size_t i = 0; i < n; ++i) {
      mbufs[i] = to_mbuf(packets[total + i].buffer);
      prepare(packets[total + i], mbufs[i]);
    }
    const uint16_t sent = transmit(mbufs, static_cast<uint16_t>(n));
    for (uint16_t i = 0; i < sent; ++i) counters_.tx_octets += packets[total + i].length;
    total += sent;
    if (sent < n) break;
  }
  return total;
}

uint32_t EthPort::send_to_tap(std::span<port::Packet> packets) {
  uint32_t total = 0;
  for (; total < packets.size(); ++total) {
    port::Packet& packet = packets[total];
    offload::complete_checksums(packet);
    if (!tap_->send(packet.view())) break;
    counters_.tx_octets += packet.length;
  }
  free(packets.first(total));
  return total;
}

uint32_t EthPort::tx_burst(std::span<port::Packet> packets, base::Now now) {
  if (packets.empty()) return 0;
  const uint32_t total = sends_to_tap_ ? send_to_tap(packets) : send(packets);
  counters_.tx_frames += total;
  counters_.tx_refused += packets.size() - total;
  if (wakes_peer_ != nullptr && total != 0) wakes_peer_->sent();
  watch(packets.size(), total, now);
  return total;
}

std::optional<int> EthPort::arm() {
  if (wakes_us_ != nullptr) return wakes_us_->arm();
  if (ring_ != nullptr) return ring_->arm();
  if (tap_ != nullptr) return tap_->descriptor();
  return std::nullopt;
}

void EthPort::free(std::span<const port::Packet> packets) {
  rte_mbuf* mbufs[kChunk];
  while (!packets.empty()) {
    const size_t n = std::min<size_t>(packets.size(), kChunk);
    for (size_t i = 0; i < n; ++i) {
      mbufs[i] = to_mbuf(packets[i].buffer);
      hand_over(mbufs[i]);
    }
    rte_pktmbuf_free_bulk(mbufs, static_cast<unsigned>(n));  // sorts mbufs of several pools itself
    packets = packets.subspan(n);
  }
}

}  // namespace rnic::dpdk

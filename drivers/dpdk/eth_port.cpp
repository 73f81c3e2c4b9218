#include "dpdk/eth_port.hpp"

#include <rte_ethdev.h>
#include <rte_mbuf.h>

#include <algorithm>
#include <cstring>
#include <string>
#include <utility>

#include "base/log.hpp"
#include "dpdk/hand_over.hpp"
#include "dpdk/interrupt_thread.hpp"
#include "dpdk/log_capture.hpp"
#include "dpdk/mbuf_frames.hpp"
#include "offload/offload.hpp"

namespace rnic::dpdk {
namespace {

constexpr uint32_t kChunk = 64;  // mbuf pointers on the stack at a time

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
  for (uint16_t i = 0; i < got; ++i) expect(mbufs[i]);
  uint32_t count = 0;
  for (uint16_t i = 0; i < got; ++i) {
    rte_mbuf* mbuf = mbufs[i];
    if (mbuf->nb_segs > 1) [[unlikely]] {
      mbuf = make_contiguous(mbuf);
      if (mbuf == nullptr) continue;
    }
    port::Packet& packet = out[count++];
    show(packet, mbuf);
    fill_verdicts(packet, mbuf, info_.checksum);
    counters_.rx_octets += packet.length;
  }
  counters_.rx_frames += count;
  return count;
}

void EthPort::prepare(port::Packet& packet, rte_mbuf* mbuf) const {
  set_octets(mbuf, packet);
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
  tell(watch_.look(waiting, took, now), info_.name, counters_);
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
  watch(packets.size(), total, now);
  return total;
}

std::optional<int> EthPort::arm() {
  if (ring_ != nullptr) return ring_->arm();
  if (tap_ != nullptr) return tap_->descriptor();
  return std::nullopt;
}

}  // namespace rnic::dpdk

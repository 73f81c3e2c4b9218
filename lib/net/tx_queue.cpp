#include "net/tx_queue.hpp"

#include <algorithm>
#include <span>

#include "base/check.hpp"
#include "base/prefetch.hpp"

namespace rnic::net {

TxQueue::TxQueue(port::Port& port, Counters& counters)
    : port_(port),
      counters_(counters),
      kept_(std::clamp(kKeptOctets / std::max(port.info().mtu, 1u), 1u, kBurst)) {}

TxQueue::~TxQueue() {
  port_.free(std::span(unsent_).first(unsent_count_));
  while (spare_count_ != 0) port_.free({{take_spare()}});
}

void TxQueue::push(std::span<const port::Packet> packets, base::Now now) {
  RNIC_CHECK(packets.size() <= open_);
  std::copy(packets.begin(), packets.end(), unsent_.begin() + unsent_count_);
  const auto count = static_cast<uint32_t>(packets.size());
  open_ -= count;
  unsent_count_ += count;
  counters_.frames_out += count;
  if (unsent_count_ == kBurst) flush(now);
}

void TxQueue::cancel(port::Packet& packet) {
  RNIC_CHECK(open_ != 0);
  --open_;
  if (spare_count_ < kBurst) {
    packet.length = 0;
    keep_spare(packet);
  } else {
    port_.free({&packet, 1});
  }
}

uint32_t TxQueue::open(std::span<port::Packet> packets, base::Now now) {
  if (unsent_count_ + open_ >= kBurst && !make_room(now)) return 0;
  const auto most = static_cast<uint32_t>(packets.size());
  if (spare_count_ == 0 && !refill(most)) return 0;
  const uint32_t count = std::min({most, kBurst - unsent_count_ - open_, spare_count_});
  for (uint32_t i = 0; i < count; ++i) packets[i] = take_spare();
  open_ += count;
  return count;
}

bool TxQueue::flush(base::Now now) {
  if (unsent_count_ != 0) hand_over(now);
  if (owes_buffers_) replace();
  return unsent_count_ == 0;
}

void TxQueue::hand_over(base::Now now) {
  const uint32_t taken = port_.tx_burst(std::span(unsent_).first(unsent_count_), now);
  RNIC_CHECK(taken <= unsent_count_);
  if (taken != unsent_count_) {
    ++counters_.port_full;
    std::copy(unsent_.begin() + taken, unsent_.begin() + unsent_count_, unsent_.begin());
  }
  unsent_count_ -= taken;
  owes_buffers_ = true;
}

// Another core has read and freed the buffers that come from the port now. Their first lines come
// to this core while nobody waits for them, as the frames of a burst have just left. Those that are
// used next have been here for a while; few come at once, as the next burst may be due soon.
[[gnu::noinline]] void TxQueue::replace() {
  owes_buffers_ = false;
  if (spare_count_ + kFew > kept_) return;
  // They come to where they stay: a copy would wait for the port's writes, which are narrower.
  const uint32_t place = (first_spare_ + spare_count_) % kBurst;
  const auto more = std::span(spare_).subspan(place, std::min(kFew, kBurst - place));
  if (!port_.alloc(more)) return;
  spare_count_ += static_cast<uint32_t>(more.size());
  for (const port::Packet& packet : more) {
    for (uint32_t i = 0; i < kFirstLines; ++i) {
      base::prefetch_for_write(packet.data + i * kLine);
    }
  }
}

bool TxQueue::make_room(base::Now now) {
  flush(now);
  return unsent_count_ + open_ < kBurst;
}

// Takes spare buffers from the port. It asks for fewer if the pool is nearly empty and refuses so
// many.
bool TxQueue::refill(uint32_t wanted) {
  for (const uint32_t n : {std::clamp(wanted, kept_, kBurst), 4u, 1u}) {
    if (port_.alloc(std::span(spare_).first(n))) {
      first_spare_ = 0;
      spare_count_ = n;
      return true;
    }
  }
  ++counters_.no_buffer;
  return false;
}

}  // namespace rnic::net

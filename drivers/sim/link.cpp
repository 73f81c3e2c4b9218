#include "sim/link.hpp"

#include <algorithm>

#include "base/check.hpp"
#include "offload/offload.hpp"

namespace rnic::sim {

namespace {

constexpr uint32_t kHeadroom = 64;
constexpr uint32_t kWireOverhead = 24;  // preamble 8, FCS 4, gap 12

Slot* to_slot(port::Buffer* buffer) { return reinterpret_cast<Slot*>(buffer); }
port::Buffer* to_buffer(Slot* slot) { return reinterpret_cast<port::Buffer*>(slot); }

uint32_t slot_octets(uint32_t mtu) { return (kHeadroom + mtu + port::kLinkHeader + 63) / 64 * 64; }

}  // namespace

void SimPort::set_up(const LinkConfig& config, bool is_a, SimPort* peer) {
  info_ = {is_a ? config.name_a : config.name_b, is_a ? config.mac_a : config.mac_b, config.mtu,
           config.checksum};
  out_ = is_a ? config.a_to_b : config.b_to_a;
  peer_ = peer;
  const uint32_t octets = slot_octets(config.mtu);
  memory_.resize(size_t{octets} * config.slots);
  slots_.resize(config.slots);
  unused_.reserve(config.slots);
  for (uint32_t i = 0; i < config.slots; ++i) {
    slots_[i] = {this, memory_.data() + size_t{octets} * i, false};
  }
  for (uint32_t i = config.slots; i-- > 0;) unused_.push_back(&slots_[i]);
  // There is room for every buffer of both pools, since received ones may be sent on.
  flights_.resize(size_t{config.slots} * 2);
}

bool SimPort::alloc(std::span<port::Packet> out) {
  if (unused_.size() < out.size()) {
    ++counters_.alloc_failed;
    return false;
  }
  for (port::Packet& packet : out) {
    Slot* slot = unused_.back();
    unused_.pop_back();
    slot->used = true;
    packet = port::Packet{};
    packet.data = slot->octets + kHeadroom;
    packet.room = slot_octets(info_.mtu) - kHeadroom;
    packet.buffer = to_buffer(slot);
  }
  return true;
}

void SimPort::free(std::span<const port::Packet> packets) {
  for (const port::Packet& packet : packets) {
    Slot* slot = to_slot(packet.buffer);
    RNIC_CHECK(slot != nullptr && slot->used);  // freed twice, or never allocated
    slot->used = false;
    slot->owner->unused_.push_back(slot);
  }
}

uint32_t SimPort::outstanding() const {
  return static_cast<uint32_t>(slots_.size() - unused_.size());
}

uint64_t SimPort::waiting(base::Now now) {
  departed_ = std::max(departed_, first_);
  while (departed_ < end_ && flight(departed_).departure <= now) ++departed_;
  return end_ - departed_;
}

void SimPort::send(const port::Packet& packet, base::Now now) {
  base::Now departure = std::max(now, wire_free_);
  if (out_.bits_per_second != 0) {
    const uint64_t bits = uint64_t{packet.length + kWireOverhead} * 8;
    departure += base::Duration(static_cast<int64_t>(
        (bits * 1'000'000'000 + out_.bits_per_second - 1) / out_.bits_per_second));
  }
  wire_free_ = departure;
  last_arrival_ = std::max(last_arrival_, departure + out_.delay);
  RNIC_CHECK(end_ - first_ < flights_.size());
  flight(end_++) = {packet, departure, last_arrival_};
  ++counters_.tx_frames;
  counters_.tx_octets += packet.length;
}

uint32_t SimPort::tx_burst(std::span<port::Packet> packets, base::Now now) {
  uint32_t taken = 0;
  for (port::Packet& packet : packets) {
    RNIC_CHECK(to_slot(packet.buffer)->used);
    if (waiting(now) >= out_.queue_limit) {
      if (!out_.drop_when_full) break;
      ++queue_drops_;
      free({&packet, 1});
    } else {
      if (info_.checksum != port::ChecksumMode::Trusted) offload::complete_checksums(packet);
      send(packet, now);
    }
    ++taken;
  }
  counters_.tx_refused += packets.size() - taken;
  return taken;
}

void SimPort::deliver_into(port::Packet& out, const Flight& arrived) {
  out = arrived.packet;
  out.ip_checksum = out.l4_checksum = port::Checksum::Unknown;
  if (info_.checksum == port::ChecksumMode::Trusted) {
    out.ip_checksum = out.l4_checksum = port::Checksum::Good;
  } else if (info_.checksum == port::ChecksumMode::Offload) {
    const auto verdict = [](bool good) {
      return good ? port::Checksum::Good : port::Checksum::Bad;
    };
    if (const auto ip = offload::locate_ip(out.view())) {
      out.ip_checksum = verdict(offload::ip_checksum_good(out.view(), *ip));
    }
    if (const auto tcp = offload::locate_tcp(out.view())) {
      out.l4_checksum = verdict(offload::tcp_checksum_good(out.view(), *tcp));
    }
  }
}

uint32_t SimPort::rx_burst(std::span<port::Packet> out, base::Now now) {
  SimPort& from = *peer_;
  uint32_t count = 0;
  while (count < out.size() && from.first_ < from.end_ && from.flight(from.first_).arrival <= now) {
    deliver_into(out[count], from.flight(from.first_++));
    counters_.rx_octets += out[count++].length;
  }
  counters_.rx_frames += count;
  return count;
}

base::Now SimPort::next_deadline() const {
  const SimPort& from = *peer_;
  return from.first_ < from.end_ ? from.flight(from.first_).arrival : base::kNever;
}

Link::Link(const LinkConfig& config) {
  a_.set_up(config, true, &b_);
  b_.set_up(config, false, &a_);
}

Link::~Link() = default;

uint64_t Link::in_flight() const { return a_.end_ - a_.first_ + b_.end_ - b_.first_; }

uint64_t Link::held() const { return a_.outstanding() + b_.outstanding() - in_flight(); }

}  // namespace rnic::sim

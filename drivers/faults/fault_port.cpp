#include "faults/fault_port.hpp"

#include <algorithm>
#include <cstring>
#include <utility>

#include "base/log.hpp"

namespace rnic::faults {

namespace {

namespace flag = wire::tcp_flag;

constexpr uint32_t kMostParts = FaultPort::kMostFaults + 1;  // of one frame, around its gaps
// The time until a port that has refused frames is asked again.
constexpr base::Duration kRetry = std::chrono::microseconds(10);
constexpr uint8_t kWrong = 0xff;  // what the last octet of a CRC is changed by

base::Seq32 sequence_of(const port::Packet& packet, const offload::TcpLayout& at) {
  return base::Seq32(base::load_be32(packet.data + at.tcp + wire::kTcpSequenceAt));
}

/// \return whether the fault is about this FPDU
bool names(const PlannedFault& fault, const FpduPart& part) {
  if (fault.kind == PlannedFaultKind::BadReadResponse) {
    return part.read_response == fault.message && part.fpdu == 1;
  }
  return part.message == fault.message && part.fpdu == fault.fpdu;
}

}  // namespace

FaultPort::FaultPort(port::Port& inner, std::string name, std::span<const PlannedFault> plan)
    : inner_(inner), name_(std::move(name)), info_(inner.info()) {
  info_.checksum = port::ChecksumMode::Software;
  for (const PlannedFault& fault : plan) {
    if (needs_frames(fault) && plan_.size() != kMostFaults) plan_.push_back(fault);
  }
  gaps_.reserve(kMostParts);
  ready_.reserve(kCapacity);
}

FaultPort::~FaultPort() {
  if (held() != 0) inner_.free(std::span(ready_).subspan(first_));
}

bool FaultPort::alloc(std::span<port::Packet> out) {
  if (inner_.alloc(out)) return true;
  ++counters_.alloc_failed;
  return false;
}

uint32_t FaultPort::rx_burst(std::span<port::Packet> out, base::Now now) {
  send_ready(now);
  const uint32_t count = inner_.rx_burst(out, now);
  for (port::Packet& packet : out.first(count)) {
    packet.ip_checksum = packet.l4_checksum = port::Checksum::Unknown;
    counters_.rx_octets += packet.length;
    const auto at = offload::locate_tcp(packet.view());
    if (!at || at->payload_size() == 0) continue;
    Flow* const flow = flows_.find(FlowEnds::of(packet.view(), *at).reversed());
    if (flow != nullptr) {
      flow->peer_sent(packet.view().subspan(at->payload, at->payload_size()));
    }
  }
  counters_.rx_frames += count;
  return count;
}

uint32_t FaultPort::tx_burst(std::span<port::Packet> packets, base::Now now) {
  send_ready(now);
  uint32_t taken = 0;
  for (const port::Packet& packet : packets) {
    if (held() + kMostParts > kCapacity) break;
    ++counters_.tx_frames;
    counters_.tx_octets += packet.length;
    ++fault_counters_.frames;
    take(packet);
    ++taken;
  }
  counters_.tx_refused += packets.size() - taken;
  send_ready(now);
  return taken;
}

void FaultPort::take(port::Packet packet) {
  offload::complete_checksums(packet);
  const auto at = offload::locate_tcp(packet.view());
  if (at && take_segment(packet, *at)) return;
  ready_.push_back(packet);
}

/// \return whether nothing of the packet is left to be sent
bool FaultPort::take_segment(port::Packet& packet, const offload::TcpLayout& at) {
  const FlowEnds ends = FlowEnds::of(packet.view(), at);
  const uint8_t flags = packet.data[at.tcp + wire::kTcpFlagsAt];
  const base::Seq32 seq = sequence_of(packet, at);
  if ((flags & flag::kSyn) != 0) {
    const FlowTable::Added added = flows_.add(ends, seq);
    if (added.is_new) ++fault_counters_.connections;
    if (added.displaced) lose_track(*added.displaced);
    return false;
  }
  Flow* const flow = flows_.find(ends);
  if (flow == nullptr) return false;
  if ((flags & (flag::kRst | flag::kFin)) != 0) flow->set_over();
  if (at.payload_size() == 0) return false;
  Segment segment{packet, at, seq, *flow};
  gaps_.clear();
  const bool followed = flow->sent(seq, packet.view().subspan(at.payload, at.payload_size()),
                                   [&](const FpduPart& part) { look(segment, part); });
  if (!followed) lose_track(ends);
  spoil(segment);
  if (gaps_.empty()) return false;
  send_around_gaps(segment);
  return true;
}

/// An FPDU of which octets are sent for the first time.
void FaultPort::look(const Segment& segment, const FpduPart& part) {
  if (part.ends) ++fault_counters_.fpdus;
  for (const PlannedFault& fault : plan_) {
    if (!names(fault, part)) continue;
    if (fault.kind == PlannedFaultKind::DropFpdu) {
      if (!gaps_.empty() && gaps_.back().end >= part.end) continue;  // the plan says it twice
      const bool goes_on = !gaps_.empty() && gaps_.back().end == part.begin;
      goes_on ? void(gaps_.back().end = part.end) : gaps_.push_back({part.begin, part.end});
      if (!part.begins) continue;
      ++fault_counters_.fpdus_dropped;
    } else {
      if (!part.ends) continue;
      ++fault_counters_.crcs_spoiled;
      segment.flow.spoil(segment.seq + (part.end - 1));
    }
    tell(fault, segment, part);
  }
}

/// Changes the CRCs that are to be wrong, in a first transmission as in each later one.
void FaultPort::spoil(Segment& segment) {
  bool changed = false;
  const auto& at = segment.at;
  segment.flow.for_each_spoiled(segment.seq, at.payload_size(), [&](uint32_t offset) {
    ++fault_counters_.bad_crcs_sent;
    segment.packet.data[at.payload + offset] ^= kWrong;
    changed = true;
  });
  if (changed) offload::write_tcp_checksum({segment.packet.data, segment.packet.length}, at);
}

/// Sends what is between the gaps, each part in a frame of its own, and frees the frame itself.
void FaultPort::send_around_gaps(Segment& segment) {
  const uint32_t size = segment.at.payload_size();
  uint32_t kept = 0;
  uint32_t parts = 0;
  gaps_.push_back({size, size});
  for (const Gap& gap : gaps_) {
    if (gap.begin > kept) {
      ++parts;
      if (!send_part(segment, {kept, gap.begin})) ++fault_counters_.no_buffer;
    }
    kept = gap.end;
  }
  ++(parts == 0 ? fault_counters_.frames_dropped : fault_counters_.frames_cut);
  inner_.free({&segment.packet, 1});
}

/// \return false: there is no buffer for it
bool FaultPort::send_part(const Segment& segment, Gap kept) {
  const port::Packet& whole = segment.packet;
  port::Packet part;
  if (!inner_.alloc({&part, 1})) return false;
  offload::TcpLayout at = segment.at;
  at.end = at.payload + (kept.end - kept.begin);
  std::memcpy(part.data, whole.data, at.payload);
  std::memcpy(part.data + at.payload, whole.data + at.payload + kept.begin, kept.end - kept.begin);
  part.length = at.end;
  base::store_be32(part.data + at.tcp + wire::kTcpSequenceAt, (segment.seq + kept.begin).value);
  // PSH and FIN go with the last octet, CWR with the first.
  uint8_t& flags = part.data[at.tcp + wire::kTcpFlagsAt];
  if (kept.end != segment.at.payload_size()) {
    flags &= static_cast<uint8_t>(~(flag::kFin | flag::kPsh));
  }
  if (kept.begin != 0) flags &= static_cast<uint8_t>(~flag::kCwr);
  const base::ByteSpan frame{part.data, part.length};
  offload::write_ip_length(frame, at);
  offload::write_tcp_checksum(frame, at);
  ready_.push_back(part);
  return true;
}

void FaultPort::lose_track(const FlowEnds& ends) {
  ++fault_counters_.lost_track;
  base::log(base::LogLevel::Warning, "faults", [&] {
    return name_ + ": a connection is not followed any more, and suffers no planned fault: " +
           to_string(ends.sender) + " to " + to_string(ends.receiver);
  });
}

void FaultPort::tell(const PlannedFault& fault, const Segment& segment,
                     const FpduPart& part) const {
  base::log(base::LogLevel::Warning, "faults", [&] {
    const FlowEnds& ends = segment.flow.ends();
    return name_ + ": done: " + to_string(fault) + ", from " + to_string(ends.sender) + " to " +
           to_string(ends.receiver) + ", octets " +
           std::to_string((segment.seq + part.begin) - segment.flow.isn()) + " to " +
           std::to_string((segment.seq + part.end) - segment.flow.isn()) +
           " behind the initial sequence number";
  });
}

void FaultPort::send_ready(base::Now now) {
  retry_at_ = base::kNever;
  if (held() == 0) return;
  const std::span<port::Packet> waiting = std::span(ready_).subspan(first_);
  first_ += inner_.tx_burst(waiting, now);
  if (held() != 0) {
    ++fault_counters_.retries;
    retry_at_ = now + kRetry;
    // Room is needed behind the last one.
    ready_.erase(ready_.begin(), ready_.begin() + static_cast<ptrdiff_t>(first_));
    first_ = 0;
    return;
  }
  ready_.clear();
  first_ = 0;
}

}  // namespace rnic::faults

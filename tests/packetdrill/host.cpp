#include "packetdrill/host.hpp"

#include "base/endian.hpp"
#include "wire/inet_checksum.hpp"
#include "wire/ipv4.hpp"
#include "wire/tcp.hpp"

namespace rnic::packetdrill {

namespace {

constexpr uint32_t kLargestFrame = 65536;

}  // namespace

Host::Host(const Setup& setup)
    : mtu(setup.mtu),
      frame_(kLargestFrame),
      push_at_(setup.push_at),
      stack_(setup.tcp, *this, {1, 2}, 3, now_) {}

bool Host::begin(llp::IpAddress source, llp::IpAddress destination, tcp::TxSlot& slot) {
  source_ = source;
  destination_ = destination;
  slot = {.tcp = frame_.data() + wire::kIpv4Header,
          .room = mtu - wire::kIpv4Header,
          .checksum_open = false,
          .frame = nullptr};
  return true;
}

void Host::mark_push(uint8_t* segment, uint32_t length) {
  namespace at = wire::tcp_offset;
  const uint32_t ports = base::load_be32(segment + at::kSourcePort);
  const uint32_t sequence = base::load_be32(segment + at::kSequence);
  if ((segment[at::kFlags] & wire::tcp_flag::kSyn) != 0) first_sequence_[ports] = sequence;
  const uint32_t header = (segment[at::kDataOffset] >> 4) * 4u;
  const auto first = first_sequence_.find(ports);
  if (length == header || first == first_sequence_.end()) return;
  const uint32_t end = sequence + (length - header) - first->second;
  if (!push_at_.contains(end) || (segment[at::kFlags] & wire::tcp_flag::kPsh) != 0) return;
  segment[at::kFlags] |= wire::tcp_flag::kPsh;
  base::store_be16(segment + at::kChecksum, 0);
  const uint32_t sum =
      wire::pseudo_header_sum(source_.value, destination_.value, wire::kIpProtocolTcp, length);
  base::store_be16(segment + at::kChecksum,
                   wire::checksum_fold(wire::checksum_add(sum, {segment, length})));
}

void Host::send(tcp::TxSlot& slot, uint32_t length, base::Now now) {
  if (!push_at_.empty()) mark_push(slot.tcp, length);
  uint8_t* ip = frame_.data();
  const uint32_t total = wire::kIpv4Header + length;
  std::fill_n(ip, wire::kIpv4Header, uint8_t{0});
  ip[wire::kIpv4VersionAt] = 0x45;
  ip[wire::kIpv4TosAt] = tos;
  base::store_be16(ip + wire::kIpv4LengthAt, static_cast<uint16_t>(total));
  base::store_be16(ip + wire::kIpv4IdAt, next_id_++);
  base::store_be16(ip + wire::kIpv4FragmentAt, wire::kIpv4DontFragment);
  ip[wire::kIpv4TtlAt] = 64;
  ip[wire::kIpv4ProtocolAt] = wire::kProtocolTcp;
  base::store_be32(ip + wire::kIpv4SourceAt, source_.value);
  base::store_be32(ip + wire::kIpv4DestinationAt, destination_.value);
  base::store_be16(ip + wire::kIpv4ChecksumAt,
                   wire::checksum_fold(wire::checksum_add(0, {ip, wire::kIpv4Header})));
  sent_.push_back({now, {ip, ip + total}});
}

bool Host::receive(base::ByteView packet) {
  const auto ip = wire::parse_ipv4(packet);
  if (!ip || ip->is_fragment()) return false;
  const base::ByteView payload =
      packet.subspan(ip->header_length, ip->total_length - ip->header_length);
  if (ip->protocol == wire::kProtocolIcmp) return receive_icmp(payload);
  if (ip->protocol != wire::kProtocolTcp) return false;
  stack_.input({.source = llp::IpAddress{ip->source},
                .destination = llp::IpAddress{ip->destination},
                .tcp = payload,
                .checksum_verified = false,
                .ecn = static_cast<uint8_t>(ip->tos & 3)},
               now_);
  settle();
  return true;
}

bool Host::receive_icmp(base::ByteView) { return false; }

void Host::settle() {
  // A turn of output() sends a quantum; what is left is due at once.
  do {
    stack_.output(now_);
  } while (stack_.next_deadline() == base::Now{});
  if (on_settled) on_settled();
}

void Host::elapse(base::Now to) {
  if (to <= now_) return;
  if (on_elapse) on_elapse(now_, to);
  now_ = to;
}

bool Host::next_event(base::Now limit) {
  const base::Now next = stack_.next_deadline();
  if (next == base::kNever || next > limit) return false;
  elapse(next);
  stack_.on_timers(now_);
  settle();
  return true;
}

void Host::advance(base::Now until) {
  while (next_event(until)) {
  }
  elapse(until);
}

}  // namespace rnic::packetdrill

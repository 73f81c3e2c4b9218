#include "packetdrill/host.hpp"

#include "base/endian.hpp"
#include "llp/pseudo_header.hpp"
#include "net/icmp_error.hpp"
#include "wire/inet_checksum.hpp"
#include "wire/ipv4.hpp"
#include "wire/tcp.hpp"

namespace rnic::packetdrill {

namespace {

constexpr uint32_t kLargestFrame = 65536;
constexpr uint32_t kIpv6Header = 40;
constexpr uint8_t kProtocolIcmpv6 = 58;
constexpr uint8_t kHopLimit = 64;

uint32_t header_towards(const IpAddress& address) {
  return address.is_v4() ? wire::kIpv4Header : kIpv6Header;
}

void store_ipv6(uint8_t* at, const IpAddress& address) {
  base::store_be64(at, address.high());
  base::store_be64(at + 8, address.low());
}

IpAddress load_ipv6(const uint8_t* at) { return {base::load_be64(at), base::load_be64(at + 8)}; }

bool parse_ip_packet(base::ByteView packet, IpPacket& out) {
  if (packet.empty()) return false;
  if (packet[0] >> 4 == 4) {
    const auto ip = wire::parse_ipv4(packet);
    if (!ip || ip->is_fragment()) return false;
    out = {.source = IpAddress::v4(ip->source),
           .destination = IpAddress::v4(ip->destination),
           .protocol = ip->protocol,
           .traffic_class = ip->tos,
           .payload = packet.subspan(ip->header_length, ip->total_length - ip->header_length)};
    return true;
  }
  if (packet[0] >> 4 != 6 || packet.size() < kIpv6Header) return false;
  const uint32_t length = base::load_be16(&packet[4]);
  if (length > packet.size() - kIpv6Header) return false;
  out = {.source = load_ipv6(&packet[8]),
         .destination = load_ipv6(&packet[24]),
         .protocol = packet[6],
         .traffic_class = static_cast<uint8_t>(base::load_be16(packet.data()) >> 4),
         .payload = packet.subspan(kIpv6Header, length)};
  return true;
}

}  // namespace

Host::Host(const Setup& setup)
    : mtu(setup.mtu),
      frame_(kLargestFrame),
      push_at_(setup.push_at),
      routes_({.address = setup.local}, {}),
      stack_(setup.tcp, *this, {1, 2}, 3, now_) {}

bool Host::begin(const IpAddress& source, const IpAddress& destination, tcp::TxSlot& slot,
                 base::Now now) {
  source_ = source;
  destination_ = destination;
  const uint32_t header = header_towards(destination);
  slot = {.tcp = frame_.data() + header,
          .room = path_mtu(destination, now) - header,
          .checksum_open = false,
          .frame = nullptr};
  return true;
}

void Host::reduce_path_mtu(IpAddress destination, uint32_t to, base::Now) {
  uint32_t& known = path_mtu_.try_emplace(destination, to).first->second;
  known = std::min(known, to);
}

uint32_t Host::path_mtu(IpAddress destination, base::Now) const {
  const auto found = path_mtu_.find(destination);
  return found == path_mtu_.end() ? mtu : std::min(mtu, found->second);
}

void Host::mark_push(uint8_t* segment, uint32_t length) {
  const uint32_t ports = base::load_be32(segment + wire::kTcpSourcePortAt);
  const uint32_t sequence = base::load_be32(segment + wire::kTcpSequenceAt);
  if ((segment[wire::kTcpFlagsAt] & wire::tcp_flag::kSyn) != 0) first_sequence_[ports] = sequence;
  const uint32_t header = (segment[wire::kTcpDataOffsetAt] >> 4) * 4u;
  const auto first = first_sequence_.find(ports);
  if (length == header || first == first_sequence_.end()) return;
  const uint32_t end = sequence + (length - header) - first->second;
  if (!push_at_.contains(end) || (segment[wire::kTcpFlagsAt] & wire::tcp_flag::kPsh) != 0) return;
  segment[wire::kTcpFlagsAt] |= wire::tcp_flag::kPsh;
  base::store_be16(segment + wire::kTcpChecksumAt, 0);
  const uint32_t sum = llp::pseudo_header_sum(source_, destination_, wire::kProtocolTcp, length);
  base::store_be16(segment + wire::kTcpChecksumAt,
                   wire::checksum_fold(wire::checksum_add(sum, {segment, length})));
}

void Host::send(tcp::TxSlot& slot, uint32_t length, base::Now now) {
  if (!push_at_.empty()) mark_push(slot.tcp, length);
  const uint8_t traffic_class = static_cast<uint8_t>(tos | slot.traffic_class);
  const uint32_t header = header_towards(destination_);
  const uint8_t hops = slot.hop_limit != 0 ? slot.hop_limit : kHopLimit;
  if (destination_.is_v4()) {
    put_ipv4(length, traffic_class, hops);
  } else {
    put_ipv6(length, traffic_class, hops);
  }
  sent_.push_back({now, {frame_.data(), frame_.data() + header + length}});
}

void Host::put_ipv4(uint32_t length, uint8_t traffic_class, uint8_t hops) {
  uint8_t* ip = frame_.data();
  std::fill_n(ip, wire::kIpv4Header, uint8_t{0});
  ip[wire::kIpv4VersionAt] = 0x45;
  ip[wire::kIpv4TosAt] = traffic_class;
  base::store_be16(ip + wire::kIpv4LengthAt, static_cast<uint16_t>(wire::kIpv4Header + length));
  base::store_be16(ip + wire::kIpv4IdAt, next_id_++);
  base::store_be16(ip + wire::kIpv4FragmentAt, wire::kIpv4DontFragment);
  ip[wire::kIpv4TtlAt] = hops;
  ip[wire::kIpv4ProtocolAt] = wire::kProtocolTcp;
  base::store_be32(ip + wire::kIpv4SourceAt, source_.as_v4());
  base::store_be32(ip + wire::kIpv4DestinationAt, destination_.as_v4());
  base::store_be16(ip + wire::kIpv4ChecksumAt,
                   wire::checksum_fold(wire::checksum_add(0, {ip, wire::kIpv4Header})));
}

void Host::put_ipv6(uint32_t length, uint8_t traffic_class, uint8_t hops) {
  // RFC 8200 s.3
  uint8_t* ip = frame_.data();
  base::store_be32(ip, 6u << 28 | uint32_t{traffic_class} << 20);
  base::store_be16(ip + 4, static_cast<uint16_t>(length));
  ip[6] = wire::kProtocolTcp;
  ip[7] = hops;
  store_ipv6(ip + 8, source_);
  store_ipv6(ip + 24, destination_);
}

bool Host::receive(base::ByteView packet) {
  IpPacket ip;
  if (!parse_ip_packet(packet, ip)) return false;
  if (ip.protocol == wire::kProtocolIcmp || ip.protocol == kProtocolIcmpv6) return receive_icmp(ip);
  if (ip.protocol != wire::kProtocolTcp) return false;
  stack_.input({.source = ip.source,
                .destination = ip.destination,
                .tcp = ip.payload,
                .checksum_verified = false,
                .ecn = static_cast<uint8_t>(ip.traffic_class & 3)},
               now_);
  settle();
  return true;
}

bool Host::receive_icmp(const IpPacket& ip) {
  const auto error = ip.protocol == wire::kProtocolIcmp
                         ? net::read_icmp_error(ip.payload, routes_)
                         : net::read_icmpv6_error(ip.payload, routes_);
  if (!error) return false;
  relay_.icmp_error(*error, now_);
  settle();
  return true;
}

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
  const base::Now own = user_deadline ? user_deadline() : base::kNever;
  const base::Now next = base::earlier(stack_.next_deadline(), own);
  if (next == base::kNever || next > limit) return false;
  elapse(next);
  stack_.on_timers(now_);
  if (own <= now_) on_user_timer();
  settle();
  return true;
}

void Host::advance(base::Now until) {
  while (next_event(until)) {
  }
  elapse(until);
}

}  // namespace rnic::packetdrill

#include "recorder/stream_frames.hpp"

#include <algorithm>
#include <utility>

#include "wire/inet_checksum.hpp"
#include "wire/ip_protocol.hpp"
#include "wire/ipv4.hpp"
#include "wire/ipv6.hpp"
#include "wire/tcp.hpp"

namespace rnic::recorder {

namespace {

namespace flag = wire::tcp_flag;

// Locally administered; they name the ends in a capture and nothing else.
constexpr wire::MacAddress kOurMac{0x02, 0, 0, 0, 0, 1};
constexpr wire::MacAddress kPeersMac{0x02, 0, 0, 0, 0, 2};
constexpr uint8_t kHops = 64;
constexpr uint16_t kWindow = 0xffff;

uint32_t ip_header(const Endpoint& end) {
  return end.address.is_v4() ? wire::kIpv4Header : wire::kIpv6Header;
}

wire::Ipv6Address words_of(const IpAddress& address) { return {address.high(), address.low()}; }

/// Writes the IP header of a segment of `length` octets.
void write_ip(uint8_t* p, const IpAddress& source, const IpAddress& destination, size_t length) {
  if (source.is_v4()) {
    wire::Ipv4 ip;
    ip.total_length = static_cast<uint32_t>(wire::kIpv4Header + length);
    ip.fragment = wire::kIpv4DontFragment;
    ip.ttl = kHops;
    ip.protocol = wire::kProtocolTcp;
    ip.source = source.as_v4();
    ip.destination = destination.as_v4();
    return wire::write_ipv4(p, ip);
  }
  wire::Ipv6 ip;
  ip.payload_length = static_cast<uint32_t>(length);
  ip.next_header = wire::kProtocolTcp;
  ip.hop_limit = kHops;
  ip.source = words_of(source);
  ip.destination = words_of(destination);
  wire::write_ipv6(p, ip);
}

/// The addresses in an IP header, as both checksums of TCP's pseudo header need them.
base::ByteView addresses_in(const uint8_t* p, bool is_v4) {
  return is_v4 ? base::ByteView(p + wire::kIpv4SourceAt, 8)
               : base::ByteView(p + wire::kIpv6SourceAt, 32);
}

}  // namespace

StreamFrames::StreamFrames(pcap::Writer& writer, const Endpoint& local, const Endpoint& remote)
    : writer_(writer), ours_{local, kOurMac, {}, false}, peers_{remote, kPeersMac, {}, false} {}

bool StreamFrames::has_finished(pcap::Way way) const { return from(way).has_finished; }

void StreamFrames::ask(base::Now now) {
  if (std::exchange(has_asked_, true)) return;
  segment(pcap::Way::Outbound, flag::kSyn, {}, now);
}

void StreamFrames::establish(base::Now now) {
  if (std::exchange(is_established_, true)) return;
  const bool we_asked = std::exchange(has_asked_, true);
  const auto asks = we_asked ? pcap::Way::Outbound : pcap::Way::Inbound;
  const auto answers = we_asked ? pcap::Way::Inbound : pcap::Way::Outbound;
  if (!we_asked) segment(asks, flag::kSyn, {}, now);
  segment(answers, flag::kSyn | flag::kAck, {}, now);
  segment(asks, flag::kAck, {}, now);
}

void StreamFrames::octets(pcap::Way way, base::ByteView octets, base::Now now) {
  establish(now);
  while (!octets.empty()) {
    const base::ByteView part = octets.first(std::min(octets.size(), kMostOctets));
    segment(way, flag::kAck | flag::kPsh, part, now);
    octets = octets.subspan(part.size());
  }
}

void StreamFrames::finish(pcap::Way way, base::Now now) {
  if (is_reset_ || has_finished(way)) return;
  establish(now);
  segment(way, flag::kFin | flag::kAck, {}, now);
  (way == pcap::Way::Outbound ? ours_ : peers_).has_finished = true;
}

void StreamFrames::reset(pcap::Way way, base::Now now) {
  if (std::exchange(is_reset_, true)) return;
  segment(way, flag::kRst | flag::kAck, {}, now);
}

void StreamFrames::segment(pcap::Way way, uint8_t flags, base::ByteView payload, base::Now now) {
  const bool outbound = way == pcap::Way::Outbound;
  End& from = outbound ? ours_ : peers_;
  write_headers(from, outbound ? peers_ : ours_, flags, payload.size());
  const size_t headers = frame_.size();
  frame_.insert(frame_.end(), payload.begin(), payload.end());
  const uint32_t ip = ip_header(from.at);
  uint8_t* const packet = frame_.data() + wire::kEtherHeader;
  const base::ByteView whole = base::ByteView(frame_).subspan(wire::kEtherHeader + ip);
  uint32_t sum = wire::checksum_add(0, addresses_in(packet, from.at.address.is_v4()));
  sum += wire::kProtocolTcp + static_cast<uint32_t>(whole.size());
  base::store_be16(frame_.data() + headers - wire::kTcpHeaderMin + wire::kTcpChecksumAt,
                   wire::checksum_fold(wire::checksum_add(sum, whole)));
  writer_.append(now, frame_, way);
  const bool counts = (flags & (flag::kSyn | flag::kFin)) != 0;
  from.next = from.next + static_cast<uint32_t>(payload.size() + (counts ? 1 : 0));
}

/// Begins frame_ anew.
void StreamFrames::write_headers(const End& from, const End& to, uint8_t flags, size_t payload) {
  const uint32_t ip = ip_header(from.at);
  frame_.resize(wire::kEtherHeader + ip + wire::kTcpHeaderMin);
  const bool is_v4 = from.at.address.is_v4();
  wire::write_ether(frame_.data(), to.mac, from.mac,
                    is_v4 ? wire::kEtherTypeIpv4 : wire::kEtherTypeIpv6);
  uint8_t* const packet = frame_.data() + wire::kEtherHeader;
  write_ip(packet, from.at.address, to.at.address, wire::kTcpHeaderMin + payload);
  wire::TcpHeader tcp;
  tcp.source_port = from.at.port;
  tcp.destination_port = to.at.port;
  tcp.sequence = from.next;
  if ((flags & flag::kAck) != 0) tcp.acknowledgment = to.next;
  tcp.flags = flags;
  tcp.window = kWindow;
  wire::write_tcp(packet + ip, tcp);
}

}  // namespace rnic::recorder

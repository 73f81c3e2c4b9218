#include "net/icmp.hpp"

#include <algorithm>
#include <cstring>

#include "base/check.hpp"
#include "llp/pseudo_header.hpp"
#include "wire/icmp.hpp"
#include "wire/inet_checksum.hpp"
#include "wire/ipv4.hpp"
#include "wire/ipv6.hpp"

namespace rnic::net {

namespace {

// IPv6's checksum covers a pseudo header (RFC 4443 s.2.3), IPv4's does not.
uint32_t pseudo_sum(const IpAddress& source, const IpAddress& destination, uint32_t length) {
  return source.is_v4() ? 0
                        : llp::pseudo_header_sum(source, destination, wire::kNextIcmpv6, length);
}

bool checksum_good(const IpIn& in) {
  const auto length = static_cast<uint32_t>(in.payload.size());
  return length >= wire::kIcmpHeader &&
         wire::checksum_fold(
             wire::checksum_add(pseudo_sum(in.source, in.destination, length), in.payload)) == 0;
}

void write_checksum(uint8_t* p, uint32_t length, const IpAddress& source,
                    const IpAddress& destination) {
  base::store_be16(p + wire::kIcmpChecksumAt, 0);
  base::store_be16(p + wire::kIcmpChecksumAt,
                   wire::checksum_fold(
                       wire::checksum_add(pseudo_sum(source, destination, length), {p, length})));
}

}  // namespace

void Icmp::input4(const IpIn& in, base::Now now) {
  if (!checksum_good(in)) {
    ++counters_.icmp_malformed;
    return;
  }
  switch (in.payload[wire::kIcmpTypeAt]) {
    case wire::kIcmpEchoRequest: return echo(in, wire::kProtocolIcmp, wire::kIcmpEchoReply, now);
    case wire::kIcmpUnreachable:
    case wire::kIcmpSourceQuench:
    case wire::kIcmpTimeExceeded:
    case wire::kIcmpParameterProblem: return error_in(read_icmp_error(in.payload, routes_), now);
    default: ++counters_.icmp_other;
  }
}

void Icmp::input6(const IpIn& in, uint8_t hop_limit, base::Now now) {
  if (!checksum_good(in)) {
    ++counters_.icmp_malformed;
    return;
  }
  const uint8_t type = in.payload[wire::kIcmpTypeAt];
  if (type >= wire::kIcmpv6RouterSolicitation && type <= wire::kIcmpv6Redirect) {
    return nd_.input(in, hop_limit, now);
  }
  // Every other message must go from one host to another.
  if (!in.destination.is_unicast() || !routes_.is_other_host(in.source)) {
    ++counters_.icmp_other;
    return;
  }
  switch (type) {
    case wire::kIcmpv6EchoRequest: return echo(in, wire::kNextIcmpv6, wire::kIcmpv6EchoReply, now);
    case wire::kIcmpv6Unreachable:
    case wire::kIcmpv6PacketTooBig:
    case wire::kIcmpv6TimeExceeded:
    case wire::kIcmpv6ParameterProblem:
      return error_in(read_icmpv6_error(in.payload, routes_), now);
    default: ++counters_.icmp_other;
  }
}

void Icmp::echo(const IpIn& in, uint8_t protocol, uint8_t reply_type, base::Now now) {
  const auto length = static_cast<uint32_t>(in.payload.size());
  // A request longer than our MTU cannot be answered in one packet.
  if (in.payload[wire::kIcmpCodeAt] != 0 || length > output_.room(in.source.is_v4()) ||
      !echoes_.allow(now)) {
    ++counters_.icmp_limited;
    return;
  }
  TxFrame reply;
  if (!output_.begin(in.destination, in.source, reply, now)) return;
  std::memcpy(reply.l4, in.payload.data(), length);
  reply.l4[wire::kIcmpTypeAt] = reply_type;
  write_checksum(reply.l4, length, in.destination, in.source);
  ++counters_.icmp_echo_in;
  output_.send(reply, protocol, length, now);
}

void Icmp::error_in(const std::optional<llp::IcmpError>& error, base::Now now) {
  if (!error) {
    ++counters_.icmp_errors_unusable;
    return;
  }
  ++counters_.icmp_errors_in;
  if (error_user_ != nullptr) error_user_->icmp_error(*error, now);
}

void Icmp::report_too_large(base::ByteView quote, uint32_t mtu, const IpAddress& local,
                            const IpAddress& to, base::Now now) {
  const IcmpErrorOut v4{wire::kIcmpUnreachable, wire::kIcmpFragmentationNeeded, mtu};
  const IcmpErrorOut v6{wire::kIcmpv6PacketTooBig, 0, mtu};
  report(to.is_v4() ? v4 : v6, quote, local, to, now);
}

void Icmp::report(const IcmpErrorOut& error, base::ByteView packet, const IpAddress& local,
                  const IpAddress& to, base::Now now) {
  const bool v4 = to.is_v4();
  if (!(v4 ? may_report4(packet) : may_report6(packet)) || !routes_.is_other_host(to)) return;
  if (!errors_.allow(now)) {
    ++counters_.icmp_limited;
    return;
  }
  TxFrame frame;
  if (!output_.begin(local, to, frame, now)) return;
  const uint32_t most =
      v4 ? kIcmpErrorMax4 - wire::kIpv4Header : kIcmpErrorMax6 - wire::kIpv6Header;
  const uint32_t length = write_icmp_error(frame.l4, std::min(frame.l4_room, most), error, packet);
  write_checksum(frame.l4, length, local, to);
  ++counters_.icmp_errors_out;
  output_.send(frame, v4 ? wire::kProtocolIcmp : wire::kNextIcmpv6, length, now);
}

}  // namespace rnic::net

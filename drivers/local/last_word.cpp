#include "local/last_word.hpp"

#include <algorithm>
#include <array>
#include <cstring>

#include "offload/offload.hpp"
#include "wire/ether.hpp"
#include "wire/ipv4.hpp"
#include "wire/ipv6.hpp"
#include "wire/tcp.hpp"

namespace rnic::local {

namespace {

void swap_octets(uint8_t* one, uint8_t* other, size_t count) {
  std::swap_ranges(one, one + count, other);
}

/// The reset goes where the segment came from.
void turn_round(uint8_t* frame, const offload::TcpLayout& at) {
  swap_octets(frame + wire::kEtherDestinationAt, frame + wire::kEtherSourceAt, 6);
  if (at.v4) {
    swap_octets(frame + at.ip + wire::kIpv4SourceAt, frame + at.ip + wire::kIpv4DestinationAt, 4);
  } else {
    swap_octets(frame + at.ip + wire::kIpv6SourceAt, frame + at.ip + wire::kIpv6DestinationAt, 16);
  }
}

/// RFC 9293 s.3.5.3: the reset has the number that the segment acknowledges; a segment that
/// acknowledges nothing is acknowledged itself.
wire::TcpHeader reset_of(const wire::TcpView& segment) {
  using namespace wire::tcp_flag;
  wire::TcpHeader out;
  out.source_port = segment.destination_port();
  out.destination_port = segment.source_port();
  out.flags = kRst;
  if (segment.has(kAck)) {
    out.sequence = segment.acknowledgment();
    return out;
  }
  const auto length = static_cast<uint32_t>(segment.payload().size());
  const uint32_t controls = (segment.has(kSyn) ? 1 : 0) + (segment.has(kFin) ? 1 : 0);
  out.acknowledgment = base::Seq32(segment.sequence().value + length + controls);
  out.flags |= kAck;
  return out;
}

}  // namespace

bool reset_for(base::ByteView frame, port::Packet& out) {
  const auto found = offload::locate_tcp(frame);
  if (!found) return false;
  const auto segment = wire::TcpView::parse(frame.subspan(found->tcp, found->end - found->tcp));
  if (!segment || segment->has(wire::tcp_flag::kRst)) return false;
  offload::TcpLayout at = *found;
  at.payload = at.end = at.tcp + wire::kTcpHeaderMin;
  const wire::TcpHeader header = reset_of(*segment);
  std::memcpy(out.data, frame.data(), at.tcp);
  out.length = at.end;
  turn_round(out.data, at);
  wire::write_tcp(out.data + at.tcp, header);
  const base::ByteSpan whole(out.data, out.length);
  offload::write_ip_length(whole, at);
  offload::write_tcp_checksum(whole, at);
  return true;
}

}  // namespace rnic::local

#include "tcp/segment.hpp"

#include <algorithm>

#include "llp/pseudo_header.hpp"
#include "wire/inet_checksum.hpp"

namespace rnic::tcp {

bool checksum_good(const IpAddress& source, const IpAddress& destination, base::ByteView tcp) {
  const uint32_t sum = llp::pseudo_header_sum(source, destination, wire::kProtocolTcp,
                                              static_cast<uint32_t>(tcp.size()));
  return wire::checksum_fold(wire::checksum_add(sum, tcp)) == 0;
}

FormError parse(const SegmentIn& in, Segment& segment) {
  const auto view = wire::TcpView::parse(in.tcp);
  if (!view || in.tcp.size() > 0xffff || !in.source.is_unicast() || !in.destination.is_unicast()) {
    return FormError::Malformed;
  }
  if (!in.checksum_verified && !checksum_good(in.source, in.destination, in.tcp)) {
    return FormError::Checksum;
  }
  if (!segment.options.parse(view->options()) || view->source_port() == 0)
    return FormError::Malformed;
  segment.local = {in.destination, view->destination_port()};
  segment.remote = {in.source, view->source_port()};
  segment.seq = view->sequence();
  segment.ack = view->acknowledgment();
  segment.flags = view->flags();
  segment.ecn = in.ecn & 3;
  segment.window = view->window();
  segment.urgent = view->urgent_pointer();
  segment.payload = view->payload();
  return FormError::None;
}

bool in_window(int64_t begin, int64_t length, int64_t window) {
  // These are the four cases of window and length of RFC 9293 table 6. With a zero window the ACK,
  // RST and URG of a segment at RCV.NXT still count (MUST-66).
  if (window == 0) return begin == 0;
  const int64_t last = begin + std::max<int64_t>(length, 1) - 1;
  if ((begin >= 0 && begin < window) || (last >= 0 && last < window)) return true;
  return begin < 0 && last >= window;  // the segment covers the whole window
}

}  // namespace rnic::tcp

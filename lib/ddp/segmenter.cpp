#include "ddp/segmenter.hpp"

#include <algorithm>
#include <array>

namespace rnic::ddp {

Cut cut(const OutboundMessage& message, uint32_t offset, uint32_t max, bool whole_only) {
  const uint32_t header = message.header_size();
  const uint32_t left = message.length - offset;
  const uint32_t room = max > header ? max - header : 0;
  const uint32_t length = std::min(left, room);
  const bool last = length == left;
  // RFC 5041 s.5.2: a segment is at most MULPDU octets including its header; only a message without
  // payload has a segment without payload.
  const bool fits = max >= header && (length > 0 || left == 0);
  return {
      .offset = offset, .length = length, .last = last, .possible = fits && (last || !whole_only)};
}

void write(const OutboundMessage& message, const Cut& segment,
           std::span<const base::ByteSpan> payload, llp::UlpduWriter& out) {
  std::array<uint8_t, wire::kDdpHeaderMax> header;
  if (message.tagged) {
    wire::write_ddp(header.data(), wire::DdpTaggedHeader{.last = segment.last,
                                                         .version = message.version,
                                                         .rsvd_ulp = message.rsvd_ulp,
                                                         .stag = message.stag,
                                                         .to = message.to + segment.offset});
  } else {
    wire::write_ddp(header.data(), wire::DdpUntaggedHeader{.last = segment.last,
                                                           .version = message.version,
                                                           .rsvd_ulp = message.rsvd_ulp,
                                                           .rsvd_ulp_tail = message.rsvd_ulp_tail,
                                                           .qn = message.qn,
                                                           .msn = message.msn,
                                                           .mo = segment.offset});
  }
  const uint32_t size = message.header_size();
  out.write(size + segment.length, {header.data(), size}, payload);
}

}  // namespace rnic::ddp

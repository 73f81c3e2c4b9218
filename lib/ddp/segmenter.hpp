/// \file
/// Cutting a message into DDP segments (RFC 5041 section 5.2).
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <span>

#include "ddp/placement.hpp"
#include "llp/framing.hpp"
#include "wire/ddp.hpp"

namespace rnic::ddp {

/// The fields that all segments of an outgoing message have in common.
struct OutboundMessage {
  bool tagged = false;
  uint8_t version = 1;
  uint8_t rsvd_ulp = 0;
  uint32_t rsvd_ulp_tail = 0;  ///< untagged
  uint32_t stag = 0;           ///< tagged
  uint64_t to = 0;             ///< tagged: TO of the first octet
  uint32_t qn = 0;             ///< untagged
  uint32_t msn = 0;            ///< untagged
  uint32_t length = 0;         ///< octets of payload; below 2^32 (DDP-5.2-02)

  [[nodiscard]] uint32_t header_size() const {
    return tagged ? wire::kDdpTaggedSize : wire::kDdpUntaggedSize;
  }
};

/// One segment of a message.
struct Cut {
  uint32_t offset = 0;   ///< of its payload inside the message
  uint32_t length = 0;   ///< octets of payload
  bool last = false;     ///< L
  bool possible = true;  ///< false: nothing useful fits
};

/// The segment at `offset` that fits `max` octets, header included. A zero-length message takes
/// exactly one segment. \param whole_only only a segment that ends the message is acceptable
[[nodiscard]] inline Cut cut(const OutboundMessage& message, uint32_t offset, uint32_t max,
                             bool whole_only) {
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

/// Writes the header of a segment to kDdpHeaderMax octets, of which it takes header_size().
inline void write_header(const OutboundMessage& message, const Cut& segment, uint8_t* header) {
  if (message.tagged) {
    wire::write_ddp(header, wire::DdpTaggedHeader{.last = segment.last,
                                                  .version = message.version,
                                                  .rsvd_ulp = message.rsvd_ulp,
                                                  .stag = message.stag,
                                                  .to = message.to + segment.offset});
  } else {
    wire::write_ddp(header, wire::DdpUntaggedHeader{.last = segment.last,
                                                    .version = message.version,
                                                    .rsvd_ulp = message.rsvd_ulp,
                                                    .rsvd_ulp_tail = message.rsvd_ulp_tail,
                                                    .qn = message.qn,
                                                    .msn = message.msn,
                                                    .mo = segment.offset});
  }
}

/// Writes the ULPDU of `segment`: header, then `payload` straight from its memory.
inline void write(const OutboundMessage& message, const Cut& segment,
                  std::span<const base::ByteSpan> payload, llp::UlpduWriter& out) {
  std::array<uint8_t, wire::kDdpHeaderMax> header;
  write_header(message, segment, header.data());
  const uint32_t size = message.header_size();
  out.write(size + segment.length, {header.data(), size}, payload);
}

/// Successive segments of a message that have one length and no L, so that their headers differ in
/// TO or MO only. \param first of them \param payload its octets, which those of the others follow
/// \param tag of the first one, to which `step` is added for each other one
[[nodiscard]] inline llp::UlpduSeries series_of(const OutboundMessage& message, const Cut& first,
                                                uint8_t* payload, const llp::RecordTag& tag,
                                                uint64_t step) {
  static_assert(wire::kDdpToAt + 8 == wire::kDdpTaggedSize);
  static_assert(wire::kDdpMoAt + 4 == wire::kDdpUntaggedSize);
  std::array<uint8_t, wire::kDdpHeaderMax> header;
  write_header(message, first, header.data());
  return {{header.data(), message.header_size()}, message.tagged ? 8u : 4u,
          {payload, first.length}, tag, step};
}

/// Writes a message as one segment, if it fits behind the ULPDU `before`, as UlpduWriter::append()
/// does. \param payload all of the message
[[nodiscard]] inline bool append(const OutboundMessage& message, base::ByteSpan payload,
                                 const llp::PulledUlpdu& before, llp::UlpduWriter& out) {
  std::array<uint8_t, wire::kDdpHeaderMax> header;
  write_header(message, {.length = message.length, .last = true}, header.data());
  return out.append(before, {header.data(), message.header_size()}, payload);
}

}  // namespace rnic::ddp

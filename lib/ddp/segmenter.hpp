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
/// TO or MO only.
class FullSegments {
 public:
  /// \param offset of the first one inside the message \param length octets of payload of each
  FullSegments(const OutboundMessage& message, uint32_t offset, uint32_t length)
      : length_(length),
        tagged_(message.tagged),
        at_(message.tagged ? message.to + offset : offset) {
    write_header(message, {.offset = offset, .length = length}, header_.data());
  }

  /// Writes the next one, as UlpduWriter::append() does. \param payload where its octets are
  [[nodiscard]] bool append(uint8_t* payload, const llp::PulledUlpdu& before,
                            llp::UlpduWriter& out) {
    const uint32_t size = tagged_ ? wire::kDdpTaggedSize : wire::kDdpUntaggedSize;
    if (!out.append(before, {header_.data(), size}, {payload, length_})) return false;
    ++count_;
    at_ += length_;
    if (tagged_) {
      base::store_be64(header_.data() + wire::kDdpToAt, at_);
    } else {
      base::store_be32(header_.data() + wire::kDdpMoAt, static_cast<uint32_t>(at_));
    }
    return true;
  }
  /// How many were written.
  [[nodiscard]] uint32_t count() const { return count_; }

 private:
  std::array<uint8_t, wire::kDdpHeaderMax> header_;
  const uint32_t length_;
  const bool tagged_;
  uint64_t at_;  // TO or MO of the next one
  uint32_t count_ = 0;
};

/// Writes a message as one segment, if it fits behind the ULPDU `before`, as UlpduWriter::append()
/// does. \param payload all of the message
[[nodiscard]] inline bool append(const OutboundMessage& message, base::ByteSpan payload,
                                 const llp::PulledUlpdu& before, llp::UlpduWriter& out) {
  std::array<uint8_t, wire::kDdpHeaderMax> header;
  write_header(message, {.length = message.length, .last = true}, header.data());
  return out.append(before, {header.data(), message.header_size()}, payload);
}

}  // namespace rnic::ddp

/// \file
/// Cutting a message into DDP segments (RFC 5041 section 5.2).
#pragma once

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
[[nodiscard]] Cut cut(const OutboundMessage& message, uint32_t offset, uint32_t max,
                      bool whole_only);

/// Writes the ULPDU of `segment`: header, then `payload` straight from its memory.
void write(const OutboundMessage& message, const Cut& segment,
           std::span<const base::ByteSpan> payload, llp::UlpduWriter& out);

}  // namespace rnic::ddp

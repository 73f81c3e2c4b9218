/// \file
/// DDP headers on the wire (RFC 5041 section 4).
#pragma once

#include <cstdint>
#include <optional>

#include "base/bytes.hpp"
#include "base/endian.hpp"

namespace rnic::wire {

// Control octet (RFC 5041 s.4.1). The four bits between L and DV are sent zero and not checked.
inline constexpr uint8_t kDdpTaggedBit = 0x80;
inline constexpr uint8_t kDdpLastBit = 0x40;
inline constexpr uint8_t kDdpVersionMask = 0x03;

inline constexpr uint32_t kDdpControlAt = 0;
inline constexpr uint32_t kDdpRsvdUlpAt = 1;  ///< first octet: the RDMAP control field

// Tagged header (s.4.2).
inline constexpr uint32_t kDdpStagAt = 2;
inline constexpr uint32_t kDdpToAt = 6;
inline constexpr uint32_t kDdpTaggedSize = 14;

// Untagged header (s.4.3).
inline constexpr uint32_t kDdpRsvdUlpTailAt = 2;  ///< last four octets of the 40-bit RsvdULP
inline constexpr uint32_t kDdpQnAt = 6;
inline constexpr uint32_t kDdpMsnAt = 10;
inline constexpr uint32_t kDdpMoAt = 14;
inline constexpr uint32_t kDdpUntaggedSize = 18;

inline constexpr uint32_t kDdpHeaderMax = kDdpUntaggedSize;

struct DdpTaggedHeader {
  bool last = false;
  uint8_t version = 1;
  uint8_t rsvd_ulp = 0;
  uint32_t stag = 0;
  uint64_t to = 0;
  friend constexpr bool operator==(const DdpTaggedHeader&, const DdpTaggedHeader&) = default;
};

struct DdpUntaggedHeader {
  bool last = false;
  uint8_t version = 1;
  uint8_t rsvd_ulp = 0;
  uint32_t rsvd_ulp_tail = 0;
  uint32_t qn = 0;
  uint32_t msn = 0;
  uint32_t mo = 0;
  friend constexpr bool operator==(const DdpUntaggedHeader&, const DdpUntaggedHeader&) = default;
};

/// True when a segment that begins with this control octet is tagged.
[[nodiscard]] constexpr bool is_ddp_tagged(uint8_t control) {
  return (control & kDdpTaggedBit) != 0;
}
/// True when a segment that begins with this control octet is the last one of its message.
[[nodiscard]] constexpr bool is_ddp_last(uint8_t control) { return (control & kDdpLastBit) != 0; }
/// Length of the header that a control octet announces.
[[nodiscard]] constexpr uint32_t ddp_header_size(uint8_t control) {
  return is_ddp_tagged(control) ? kDdpTaggedSize : kDdpUntaggedSize;
}

/// `in` is long enough for a tagged header, and the T bit says that it is one.
[[nodiscard]] inline bool has_ddp_tagged(base::ByteView in) {
  return in.size() >= kDdpTaggedSize && is_ddp_tagged(in[kDdpControlAt]);
}
/// Reads kDdpTaggedSize octets for which has_ddp_tagged() is true.
[[nodiscard]] inline DdpTaggedHeader read_ddp_tagged(const uint8_t* p) {
  return DdpTaggedHeader{.last = (p[kDdpControlAt] & kDdpLastBit) != 0,
                         .version = static_cast<uint8_t>(p[kDdpControlAt] & kDdpVersionMask),
                         .rsvd_ulp = p[kDdpRsvdUlpAt],
                         .stag = base::load_be32(p + kDdpStagAt),
                         .to = base::load_be64(p + kDdpToAt)};
}

/// Empty when `in` is too short or the T bit says untagged.
[[nodiscard]] inline std::optional<DdpTaggedHeader> parse_ddp_tagged(base::ByteView in) {
  if (!has_ddp_tagged(in)) return std::nullopt;
  return read_ddp_tagged(in.data());
}

/// `in` is long enough for an untagged header, and the T bit says that it is one.
[[nodiscard]] inline bool has_ddp_untagged(base::ByteView in) {
  return in.size() >= kDdpUntaggedSize && !is_ddp_tagged(in[kDdpControlAt]);
}
/// Reads kDdpUntaggedSize octets for which has_ddp_untagged() is true.
[[nodiscard]] inline DdpUntaggedHeader read_ddp_untagged(const uint8_t* p) {
  return DdpUntaggedHeader{.last = (p[kDdpControlAt] & kDdpLastBit) != 0,
                           .version = static_cast<uint8_t>(p[kDdpControlAt] & kDdpVersionMask),
                           .rsvd_ulp = p[kDdpRsvdUlpAt],
                           .rsvd_ulp_tail = base::load_be32(p + kDdpRsvdUlpTailAt),
                           .qn = base::load_be32(p + kDdpQnAt),
                           .msn = base::load_be32(p + kDdpMsnAt),
                           .mo = base::load_be32(p + kDdpMoAt)};
}

/// Empty when `in` is too short or the T bit says tagged.
[[nodiscard]] inline std::optional<DdpUntaggedHeader> parse_ddp_untagged(base::ByteView in) {
  if (!has_ddp_untagged(in)) return std::nullopt;
  return read_ddp_untagged(in.data());
}

/// Writes kDdpTaggedSize octets.
inline void write_ddp(uint8_t* p, const DdpTaggedHeader& h) {
  p[kDdpControlAt] = static_cast<uint8_t>(kDdpTaggedBit | (h.last ? kDdpLastBit : 0) |
                                          (h.version & kDdpVersionMask));
  p[kDdpRsvdUlpAt] = h.rsvd_ulp;
  base::store_be32(p + kDdpStagAt, h.stag);
  base::store_be64(p + kDdpToAt, h.to);
}

/// Writes kDdpUntaggedSize octets.
inline void write_ddp(uint8_t* p, const DdpUntaggedHeader& h) {
  p[kDdpControlAt] =
      static_cast<uint8_t>((h.last ? kDdpLastBit : 0) | (h.version & kDdpVersionMask));
  p[kDdpRsvdUlpAt] = h.rsvd_ulp;
  base::store_be32(p + kDdpRsvdUlpTailAt, h.rsvd_ulp_tail);
  base::store_be32(p + kDdpQnAt, h.qn);
  base::store_be32(p + kDdpMsnAt, h.msn);
  base::store_be32(p + kDdpMoAt, h.mo);
}

}  // namespace rnic::wire

/// \file
/// DDP headers on the wire (RFC 5041 section 4).
#pragma once

#include <cstdint>
#include <optional>

#include "base/bytes.hpp"
#include "base/endian.hpp"

namespace rnic::wire::ddp {

// Control octet (RFC 5041 s.4.1). The four bits between L and DV are sent zero and not checked.
inline constexpr uint8_t kTaggedBit = 0x80;
inline constexpr uint8_t kLastBit = 0x40;
inline constexpr uint8_t kVersionMask = 0x03;

inline constexpr uint32_t kControlOffset = 0;
inline constexpr uint32_t kRsvdUlpOffset = 1;  ///< first octet: the RDMAP control field

// Tagged header (s.4.2).
inline constexpr uint32_t kStagOffset = 2;
inline constexpr uint32_t kToOffset = 6;
inline constexpr uint32_t kTaggedSize = 14;

// Untagged header (s.4.3).
inline constexpr uint32_t kRsvdUlpTailOffset = 2;  ///< last four octets of the 40-bit RsvdULP
inline constexpr uint32_t kQnOffset = 6;
inline constexpr uint32_t kMsnOffset = 10;
inline constexpr uint32_t kMoOffset = 14;
inline constexpr uint32_t kUntaggedSize = 18;

inline constexpr uint32_t kHeaderMax = kUntaggedSize;

struct TaggedHeader {
  bool last = false;
  uint8_t version = 1;
  uint8_t rsvd_ulp = 0;
  uint32_t stag = 0;
  uint64_t to = 0;
  friend constexpr bool operator==(const TaggedHeader&, const TaggedHeader&) = default;
};

struct UntaggedHeader {
  bool last = false;
  uint8_t version = 1;
  uint8_t rsvd_ulp = 0;
  uint32_t rsvd_ulp_tail = 0;
  uint32_t qn = 0;
  uint32_t msn = 0;
  uint32_t mo = 0;
  friend constexpr bool operator==(const UntaggedHeader&, const UntaggedHeader&) = default;
};

/// True when a segment that begins with this control octet is tagged.
[[nodiscard]] constexpr bool is_tagged(uint8_t control) { return (control & kTaggedBit) != 0; }
/// Length of the header that a control octet announces.
[[nodiscard]] constexpr uint32_t header_size(uint8_t control) {
  return is_tagged(control) ? kTaggedSize : kUntaggedSize;
}

/// Nothing when `in` is too short or the T bit says untagged.
[[nodiscard]] inline std::optional<TaggedHeader> parse_tagged(base::ByteView in) {
  if (in.size() < kTaggedSize || !is_tagged(in[kControlOffset])) return std::nullopt;
  const uint8_t* p = in.data();
  return TaggedHeader{.last = (p[kControlOffset] & kLastBit) != 0,
                      .version = static_cast<uint8_t>(p[kControlOffset] & kVersionMask),
                      .rsvd_ulp = p[kRsvdUlpOffset],
                      .stag = base::load_be32(p + kStagOffset),
                      .to = base::load_be64(p + kToOffset)};
}

/// Nothing when `in` is too short or the T bit says tagged.
[[nodiscard]] inline std::optional<UntaggedHeader> parse_untagged(base::ByteView in) {
  if (in.size() < kUntaggedSize || is_tagged(in[kControlOffset])) return std::nullopt;
  const uint8_t* p = in.data();
  return UntaggedHeader{.last = (p[kControlOffset] & kLastBit) != 0,
                        .version = static_cast<uint8_t>(p[kControlOffset] & kVersionMask),
                        .rsvd_ulp = p[kRsvdUlpOffset],
                        .rsvd_ulp_tail = base::load_be32(p + kRsvdUlpTailOffset),
                        .qn = base::load_be32(p + kQnOffset),
                        .msn = base::load_be32(p + kMsnOffset),
                        .mo = base::load_be32(p + kMoOffset)};
}

/// Writes kTaggedSize octets.
inline void emit(const TaggedHeader& h, uint8_t* out) {
  out[kControlOffset] =
      static_cast<uint8_t>(kTaggedBit | (h.last ? kLastBit : 0) | (h.version & kVersionMask));
  out[kRsvdUlpOffset] = h.rsvd_ulp;
  base::store_be32(out + kStagOffset, h.stag);
  base::store_be64(out + kToOffset, h.to);
}

/// Writes kUntaggedSize octets.
inline void emit(const UntaggedHeader& h, uint8_t* out) {
  out[kControlOffset] = static_cast<uint8_t>((h.last ? kLastBit : 0) | (h.version & kVersionMask));
  out[kRsvdUlpOffset] = h.rsvd_ulp;
  base::store_be32(out + kRsvdUlpTailOffset, h.rsvd_ulp_tail);
  base::store_be32(out + kQnOffset, h.qn);
  base::store_be32(out + kMsnOffset, h.msn);
  base::store_be32(out + kMoOffset, h.mo);
}

}  // namespace rnic::wire::ddp

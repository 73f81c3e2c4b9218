/// \file
/// MPA on the wire (RFC 5044): start frames (s.7.1.1), their enhanced data (RFC 6581 s.9), FPDU
/// header, marker and trailer (s.4.1, 4.2). Offsets by name; every parse checks the length first.
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>

#include "base/bytes.hpp"
#include "base/endian.hpp"

namespace rnic::wire {

// --- start frames, RFC 5044 s.7.1.1 ---

inline constexpr size_t kMpaKeySize = 16;
inline constexpr size_t kMpaStartHeaderSize = 20;
inline constexpr size_t kMpaFlagsAt = 16;  ///< the first octet behind the key
inline constexpr size_t kMpaRevisionAt = 17;
inline constexpr size_t kMpaPdLengthAt = 18;
inline constexpr size_t kMpaPrivateDataMax = 512;         ///< revisions 1 and 2
inline constexpr size_t kMpaDraftPrivateDataMax = 65535;  ///< revision 0: draft-ietf-rddp-mpa-00
inline constexpr uint8_t kMpaRevision = 1;

using MpaKey = std::array<uint8_t, kMpaKeySize>;
/// "MPA ID Req Frame"
inline constexpr MpaKey kMpaRequestKey{0x4d, 0x50, 0x41, 0x20, 0x49, 0x44, 0x20, 0x52,
                                       0x65, 0x71, 0x20, 0x46, 0x72, 0x61, 0x6d, 0x65};
/// "MPA ID Rep Frame"
inline constexpr MpaKey kMpaReplyKey{0x4d, 0x50, 0x41, 0x20, 0x49, 0x44, 0x20, 0x52,
                                     0x65, 0x70, 0x20, 0x46, 0x72, 0x61, 0x6d, 0x65};

inline constexpr uint8_t kMpaFlagMarkers = 0x80;   ///< M: markers wanted in what the peer sends
inline constexpr uint8_t kMpaFlagCrc = 0x40;       ///< C: CRC wanted
inline constexpr uint8_t kMpaFlagReject = 0x20;    ///< R: rejected (Reply only; not in revision 0)
inline constexpr uint8_t kMpaFlagEnhanced = 0x10;  ///< S: enhanced data first (revision 2)

/// The fields of a start frame behind its key.
struct MpaStartHeader {
  bool markers = false;
  bool crc = false;
  bool reject = false;
  uint8_t revision = kMpaRevision;
  uint16_t pd_length = 0;
  bool enhanced = false;  ///< the private data begins with MpaEnhancedData
};

/// Parses the fields behind the key. Flag bits that the revision calls reserved are not looked at.
/// Empty when there are fewer than 20 octets.
[[nodiscard]] inline std::optional<MpaStartHeader> parse_mpa_start_header(base::ByteView octets) {
  if (octets.size() < kMpaStartHeaderSize) return std::nullopt;
  const uint8_t flags = octets[kMpaFlagsAt];
  MpaStartHeader header;
  header.markers = (flags & kMpaFlagMarkers) != 0;
  header.crc = (flags & kMpaFlagCrc) != 0;
  header.revision = octets[kMpaRevisionAt];
  header.reject = header.revision != 0 && (flags & kMpaFlagReject) != 0;
  header.enhanced = header.revision >= 2 && (flags & kMpaFlagEnhanced) != 0;
  header.pd_length = base::load_be16(octets.data() + kMpaPdLengthAt);
  return header;
}

/// Writes 20 octets; reserved bits are zero.
inline void write_mpa_start_header(uint8_t* p, const MpaKey& key, const MpaStartHeader& header) {
  std::copy(key.begin(), key.end(), p);
  p[kMpaFlagsAt] = static_cast<uint8_t>(
      (header.markers ? kMpaFlagMarkers : 0) | (header.crc ? kMpaFlagCrc : 0) |
      (header.reject ? kMpaFlagReject : 0) | (header.enhanced ? kMpaFlagEnhanced : 0));
  p[kMpaRevisionAt] = header.revision;
  base::store_be16(p + kMpaPdLengthAt, header.pd_length);
}

// --- enhanced data, RFC 6581 s.9 ---

inline constexpr size_t kMpaEnhancedSize = 4;
inline constexpr size_t kMpaIrdAt = 0;  ///< A and B above the 14 bits of IRD
inline constexpr size_t kMpaOrdAt = 2;  ///< C and D above the 14 bits of ORD
inline constexpr uint16_t kMpaReadsMask = 0x3fff;

/// The control flags B, C and D: kinds of RTR indication, as a set.
inline constexpr uint8_t kMpaRtrSend = 1;   ///< B
inline constexpr uint8_t kMpaRtrWrite = 2;  ///< C
inline constexpr uint8_t kMpaRtrRead = 4;   ///< D

struct MpaEnhancedData {
  bool peer_to_peer = false;  ///< A
  uint8_t rtr = 0;            ///< kMpaRtr*
  uint16_t ird = 0;           ///< 14 bits
  uint16_t ord = 0;           ///< 14 bits
  friend constexpr bool operator==(const MpaEnhancedData&, const MpaEnhancedData&) = default;
};

/// Empty when there are fewer than 4 octets. With A = 0 the other flags are ignored (RFC 6581
/// s.9.2).
[[nodiscard]] inline std::optional<MpaEnhancedData> parse_mpa_enhanced(base::ByteView octets) {
  if (octets.size() < kMpaEnhancedSize) return std::nullopt;
  const uint16_t first = base::load_be16(octets.data() + kMpaIrdAt);
  const uint16_t second = base::load_be16(octets.data() + kMpaOrdAt);
  MpaEnhancedData data;
  data.peer_to_peer = (first & 0x8000) != 0;
  data.ird = first & kMpaReadsMask;
  data.ord = second & kMpaReadsMask;
  if (!data.peer_to_peer) return data;
  data.rtr = static_cast<uint8_t>(((first & 0x4000) != 0 ? kMpaRtrSend : 0) |
                                  ((second & 0x8000) != 0 ? kMpaRtrWrite : 0) |
                                  ((second & 0x4000) != 0 ? kMpaRtrRead : 0));
  return data;
}

/// Writes 4 octets.
inline void write_mpa_enhanced(uint8_t* p, const MpaEnhancedData& data) {
  const uint8_t rtr = data.peer_to_peer ? data.rtr : 0;
  base::store_be16(p + kMpaIrdAt, static_cast<uint16_t>((data.peer_to_peer ? 0x8000 : 0) |
                                                        ((rtr & kMpaRtrSend) != 0 ? 0x4000 : 0) |
                                                        (data.ird & 0x3fff)));
  base::store_be16(p + kMpaOrdAt, static_cast<uint16_t>(((rtr & kMpaRtrWrite) != 0 ? 0x8000 : 0) |
                                                        ((rtr & kMpaRtrRead) != 0 ? 0x4000 : 0) |
                                                        (data.ord & 0x3fff)));
}

// --- FPDU, RFC 5044 s.4.1 ---

inline constexpr uint32_t kMpaLengthSize = 2;
inline constexpr uint32_t kMpaCrcSize = 4;
inline constexpr uint32_t kMpaUlpduMax = 65535;  ///< the largest value of ULPDU_Length

/// Octets of pad behind a ULPDU.
[[nodiscard]] constexpr uint32_t mpa_pad(uint32_t ulpdu_length) {
  return (4 - ((kMpaLengthSize + ulpdu_length) & 3)) & 3;
}
/// Octets of an FPDU (ULPDU_Length, ULPDU, pad and CRC) without markers.
[[nodiscard]] constexpr uint32_t mpa_fpdu_size(uint32_t ulpdu_length) {
  return kMpaLengthSize + ulpdu_length + mpa_pad(ulpdu_length) + kMpaCrcSize;
}

// --- marker, RFC 5044 s.4.2 ---

inline constexpr uint32_t kMpaMarkerSize = 4;
inline constexpr uint32_t kMpaFpduptrAt = 2;  ///< behind two reserved octets
inline constexpr uint32_t kMpaMarkerInterval = 512;

/// The FPDUPTR of a marker, its two low bits read as zero. `p` has kMpaMarkerSize octets.
[[nodiscard]] inline uint32_t load_mpa_marker(const uint8_t* p) {
  return base::load_be16(p + kMpaFpduptrAt) & 0xfffcu;
}
inline void store_mpa_marker(uint8_t* p, uint32_t fpduptr) {
  base::store_be32(p, fpduptr & 0xfffcu);
}

}  // namespace rnic::wire

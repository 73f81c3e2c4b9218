/// \file
/// MPA on the wire (RFC 5044): start frames (s.7.1.1), FPDU header, marker and trailer
/// (s.4.1, 4.2). Offsets by name; every parse checks the length first.
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
inline constexpr size_t kMpaPrivateDataMax = 512;
inline constexpr uint8_t kMpaRevision = 1;

using MpaKey = std::array<uint8_t, kMpaKeySize>;
/// "MPA ID Req Frame"
inline constexpr MpaKey kMpaRequestKey{0x4d, 0x50, 0x41, 0x20, 0x49, 0x44, 0x20, 0x52,
                                       0x65, 0x71, 0x20, 0x46, 0x72, 0x61, 0x6d, 0x65};
/// "MPA ID Rep Frame"
inline constexpr MpaKey kMpaReplyKey{0x4d, 0x50, 0x41, 0x20, 0x49, 0x44, 0x20, 0x52,
                                     0x65, 0x70, 0x20, 0x46, 0x72, 0x61, 0x6d, 0x65};

inline constexpr uint8_t kMpaFlagMarkers = 0x80;  ///< M: markers wanted in what the peer sends
inline constexpr uint8_t kMpaFlagCrc = 0x40;      ///< C: CRC wanted
inline constexpr uint8_t kMpaFlagReject = 0x20;   ///< R: rejected (Reply only)

/// What stands behind the key.
struct MpaStartHeader {
  bool markers = false;
  bool crc = false;
  bool reject = false;
  uint8_t revision = kMpaRevision;
  uint16_t pd_length = 0;
};

/// The fields behind the key; reserved flag bits are not looked at. Empty when there are fewer than
/// 20 octets.
[[nodiscard]] inline std::optional<MpaStartHeader> parse_mpa_start_header(base::ByteView octets) {
  if (octets.size() < kMpaStartHeaderSize) return std::nullopt;
  const uint8_t flags = octets[kMpaKeySize];
  MpaStartHeader header;
  header.markers = (flags & kMpaFlagMarkers) != 0;
  header.crc = (flags & kMpaFlagCrc) != 0;
  header.reject = (flags & kMpaFlagReject) != 0;
  header.revision = octets[kMpaKeySize + 1];
  header.pd_length = base::load_be16(octets.data() + kMpaKeySize + 2);
  return header;
}

/// Writes 20 octets; reserved bits are zero.
inline void emit_mpa_start_header(const MpaKey& key, const MpaStartHeader& header, uint8_t* dst) {
  std::copy(key.begin(), key.end(), dst);
  dst[kMpaKeySize] =
      static_cast<uint8_t>((header.markers ? kMpaFlagMarkers : 0) | (header.crc ? kMpaFlagCrc : 0) |
                           (header.reject ? kMpaFlagReject : 0));
  dst[kMpaKeySize + 1] = header.revision;
  base::store_be16(dst + kMpaKeySize + 2, header.pd_length);
}

// --- FPDU, RFC 5044 s.4.1 ---

inline constexpr uint32_t kMpaLengthSize = 2;
inline constexpr uint32_t kMpaCrcSize = 4;
inline constexpr uint32_t kMpaUlpduMax = 65535;  ///< what ULPDU_Length can say

/// Octets of pad behind a ULPDU.
[[nodiscard]] constexpr uint32_t mpa_pad(uint32_t ulpdu_length) {
  return (4 - ((kMpaLengthSize + ulpdu_length) & 3)) & 3;
}
/// ULPDU_Length, ULPDU, pad and CRC, without markers.
[[nodiscard]] constexpr uint32_t mpa_fpdu_size(uint32_t ulpdu_length) {
  return kMpaLengthSize + ulpdu_length + mpa_pad(ulpdu_length) + kMpaCrcSize;
}

// --- marker, RFC 5044 s.4.2 ---

inline constexpr uint32_t kMpaMarkerSize = 4;
inline constexpr uint32_t kMpaMarkerInterval = 512;

/// FPDUPTR with its two low bits as zero. `at` has kMpaMarkerSize octets.
[[nodiscard]] inline uint32_t load_mpa_fpduptr(const uint8_t* at) {
  return base::load_be16(at + 2) & 0xfffcu;
}
inline void store_mpa_marker(uint8_t* at, uint32_t fpduptr) {
  base::store_be32(at, fpduptr & 0xfffcu);
}

}  // namespace rnic::wire

/// \file
/// ULP framing on the wire (draft-ietf-tsvwg-tcp-ulp-frame-00): header of a framing PDU (s.5) and
/// marker (s.6), and the frames by which two ends of this implementation agree on its use, which
/// the draft leaves to the ULP (s.4).
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>

#include "base/bytes.hpp"
#include "base/endian.hpp"

namespace rnic::wire {

inline constexpr uint32_t kTufHeaderSize = 8;
inline constexpr uint32_t kTufLengthAt = 0;  ///< the six octets of the key follow
inline constexpr uint32_t kTufMarkerSize = 4;
inline constexpr uint32_t kTufPduMax = 65528;  ///< 2^16 - 8 (s.3)
inline constexpr uint32_t kTufEmergencyPdu = 512;

/// A key of 48 bits; the upper 16 bits are 0.
using TufKey = uint64_t;
inline constexpr TufKey kTufKeyMask = 0xffff'ffff'ffff;

struct TufHeader {
  uint16_t length = 0;  ///< octets of the ULP PDUs behind the header
  TufKey key = 0;
};

/// `p` has kTufHeaderSize octets.
[[nodiscard]] inline TufHeader load_tuf_header(const uint8_t* p) {
  return {base::load_be16(p + kTufLengthAt), base::load_be64(p) & kTufKeyMask};
}
inline void store_tuf_header(uint8_t* p, const TufHeader& header) {
  base::store_be64(p, uint64_t{header.length} << 48 | (header.key & kTufKeyMask));
}

/// The segment looks like one whole framing PDU (s.5.2, s.5.4).
[[nodiscard]] inline bool is_tuf_frame(base::ByteView segment, TufKey key) {
  if (segment.size() < kTufHeaderSize) return false;
  const TufHeader header = load_tuf_header(segment.data());
  return header.length == segment.size() - kTufHeaderSize && header.key == key;
}

/// Writes a marker: the same offset twice (s.6).
inline void store_tuf_marker(uint8_t* p, uint16_t next_pdu) {
  base::store_be16(p, next_pdu);
  base::store_be16(p + 2, next_pdu);
}

// --- the negotiation's frames ---

inline constexpr size_t kTufStartSize = 32;
inline constexpr size_t kTufVersionAt = 8;  ///< the first octet behind the magic
inline constexpr size_t kTufFlagsAt = 9;
inline constexpr size_t kTufReceiveModesAt = 10;
inline constexpr size_t kTufSendModesAt = 11;
inline constexpr size_t kTufChosenSendAt = 12;
inline constexpr size_t kTufChosenReceiveAt = 13;
inline constexpr size_t kTufMarkerIntervalAt = 14;
inline constexpr size_t kTufMaxPduAt = 16;  ///< the key follows, as in a TufHeader
inline constexpr size_t kTufPrivateDataAt = 24;
inline constexpr size_t kTufIrdAt = 26;
inline constexpr size_t kTufOrdAt = 28;
inline constexpr size_t kTufGoSize = 8;
inline constexpr size_t kTufPrivateDataMax = 512;
inline constexpr uint8_t kTufVersion = 1;

using TufMagic = std::array<uint8_t, 8>;
inline constexpr TufMagic kTufRequestMagic{'T', 'U', 'F', ' ', 'R', 'e', 'q', ' '};
inline constexpr TufMagic kTufReplyMagic{'T', 'U', 'F', ' ', 'R', 'e', 'p', ' '};
inline constexpr TufMagic kTufGoMagic{'T', 'U', 'F', ' ', 'G', 'o', ' ', ' '};

inline constexpr uint8_t kTufModeAlign = 0x01;
inline constexpr uint8_t kTufModeMarkers = 0x02;

/// The contents of a start frame (s.4): the wishes of an end as a receiver, and its abilities as a
/// sender.
struct TufStart {
  uint8_t version = kTufVersion;
  bool reject = false;           ///< Reply only
  bool has_reads = false;        ///< ird and ord are valid
  bool packing = true;           ///< several ULP PDUs in a framing PDU are welcome
  uint8_t receive_modes = 0;     ///< kTufMode*: modes in which the peer should send
  uint8_t send_modes = 0;        ///< kTufMode*: modes in which this end can send
  uint8_t chosen_send = 0;       ///< Reply: the mode in which its sender will send
  uint8_t chosen_receive = 0;    ///< Reply: the mode in which its sender expects the peer to send
  uint16_t marker_interval = 0;  ///< interval at which the peer should send markers
  uint16_t max_pdu = 0;          ///< longest PDU wanted in marker mode
  TufKey key = 0;                ///< key of this end's framing PDUs in alignment mode
  uint16_t private_data = 0;     ///< octets behind this frame
  uint16_t ird = 0;              ///< as in RFC 6581 s.9: 14 bits
  uint16_t ord = 0;              ///< 14 bits, too
};

/// Writes kTufStartSize octets.
inline void write_tuf_start(uint8_t* p, const TufMagic& magic, const TufStart& start) {
  std::fill_n(p, kTufStartSize, uint8_t{0});
  std::copy(magic.begin(), magic.end(), p);
  p[kTufVersionAt] = start.version;
  p[kTufFlagsAt] = static_cast<uint8_t>((start.reject ? 0x80 : 0) | (start.packing ? 0x40 : 0) |
                                        (start.has_reads ? 0x20 : 0));
  p[kTufReceiveModesAt] = start.receive_modes;
  p[kTufSendModesAt] = start.send_modes;
  p[kTufChosenSendAt] = start.chosen_send;
  p[kTufChosenReceiveAt] = start.chosen_receive;
  base::store_be16(p + kTufMarkerIntervalAt, start.marker_interval);
  store_tuf_header(p + kTufMaxPduAt, {start.max_pdu, start.key});
  base::store_be16(p + kTufPrivateDataAt, start.private_data);
  if (!start.has_reads) return;
  base::store_be16(p + kTufIrdAt, start.ird);
  base::store_be16(p + kTufOrdAt, start.ord);
}

/// Parses the fields behind the magic. Empty when there are fewer than kTufStartSize octets.
[[nodiscard]] inline std::optional<TufStart> parse_tuf_start(base::ByteView octets) {
  if (octets.size() < kTufStartSize) return std::nullopt;
  const uint8_t* p = octets.data();
  TufStart start;
  start.version = p[kTufVersionAt];
  start.reject = (p[kTufFlagsAt] & 0x80) != 0;
  start.packing = (p[kTufFlagsAt] & 0x40) != 0;
  start.receive_modes = p[kTufReceiveModesAt];
  start.send_modes = p[kTufSendModesAt];
  start.chosen_send = p[kTufChosenSendAt];
  start.chosen_receive = p[kTufChosenReceiveAt];
  start.marker_interval = base::load_be16(p + kTufMarkerIntervalAt);
  const TufHeader header = load_tuf_header(p + kTufMaxPduAt);
  start.max_pdu = header.length;
  start.key = header.key;
  start.private_data = base::load_be16(p + kTufPrivateDataAt);
  start.has_reads = (p[kTufFlagsAt] & 0x20) != 0;
  if (!start.has_reads) return start;
  start.ird = base::load_be16(p + kTufIrdAt) & 0x3fff;
  start.ord = base::load_be16(p + kTufOrdAt) & 0x3fff;
  return start;
}

}  // namespace rnic::wire

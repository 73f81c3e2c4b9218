/// \file
/// How one direction of a connection is framed, and how the PDUs of a ULP tell their length.
#pragma once

#include <algorithm>
#include <cstdint>
#include <optional>

#include "base/bytes.hpp"
#include "rnic/transport.hpp"
#include "wire/tuf.hpp"

namespace rnic::tuf {

/// What is wrong with a received framed stream. The rest of the stream cannot be read.
enum class Error : uint8_t {
  None,
  BadKey,      ///< a framing PDU begins where it must, with another key
  BadLength,   ///< a framing PDU and the PDUs in it do not fit together
  BadMarker,   ///< a marker points elsewhere than to the next PDU
  PduTooLong,  ///< a PDU longer than what was agreed
};
[[nodiscard]] const char* to_string(Error error);

/// Where a PDU of the ULP tells its length. The draft has PDUs describe themselves (s.1): nothing
/// of its own separates the PDUs packed into one framing PDU, or those of a marked stream.
struct PduFormat {
  uint8_t length_at = 0;  ///< octets in front of the length field
  /// 1..4, big-endian; 0: a PDU does not tell, it fills its framing PDU.
  uint8_t length_octets = 2;
  uint16_t adds = 2;  ///< octets of the PDU that the field does not count

  /// A PDU begins with 16 bits that say how many octets follow.
  [[nodiscard]] static constexpr PduFormat length_first() { return {}; }
  /// PDUs are opaque: this is for alignment mode without packing.
  [[nodiscard]] static constexpr PduFormat one_per_frame() { return {0, 0, 0}; }

  [[nodiscard]] constexpr bool tells_length() const { return length_octets != 0; }
  /// Octets of a PDU that have to be there before its length is known.
  [[nodiscard]] constexpr uint32_t head() const { return uint32_t{length_at} + length_octets; }
  /// Length of the PDU that begins with these head() octets; 0 when they cannot begin one.
  [[nodiscard]] constexpr uint64_t length_of(const uint8_t* p) const {
    uint64_t value = 0;
    for (uint32_t i = length_at; i < head(); ++i) value = value << 8 | p[i];
    return value + adds >= head() ? value + adds : 0;
  }
};
inline constexpr uint32_t kPduHeadMax = 260;  ///< of PduFormat::head(), rounded up

/// Range of a marker interval, octets of the stream, the marker included.
inline constexpr uint16_t kIntervalMin = 16;
inline constexpr uint16_t kIntervalDefault = 2048;  // the draft's example

}  // namespace rnic::tuf

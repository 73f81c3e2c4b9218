/// \file
/// RDMAP control field and Read Request header on the wire (RFC 5040 sections 4.1 and 4.4).
#pragma once

#include <cstdint>
#include <optional>

#include "base/bytes.hpp"
#include "base/endian.hpp"

namespace rnic::wire::rdmap {

// Control field (s.4.1): RV in the two high bits, two reserved bits, the opcode.
inline constexpr uint8_t kVersionShift = 6;
inline constexpr uint8_t kOpcodeMask = 0x0f;

/// RFC 5040 figure 4.
enum class Opcode : uint8_t {
  Write = 0,
  ReadRequest = 1,
  ReadResponse = 2,
  Send = 3,
  SendInvalidate = 4,
  SendSolicited = 5,
  SendSolicitedInvalidate = 6,
  Terminate = 7,
};

[[nodiscard]] constexpr uint8_t control(Opcode opcode, uint8_t version) {
  return static_cast<uint8_t>(version << kVersionShift | static_cast<uint8_t>(opcode));
}
[[nodiscard]] constexpr uint8_t version_of(uint8_t control) { return control >> kVersionShift; }
[[nodiscard]] constexpr uint8_t opcode_of(uint8_t control) { return control & kOpcodeMask; }

// Queue numbers (s.3).
inline constexpr uint32_t kSendQn = 0;
inline constexpr uint32_t kReadRequestQn = 1;
inline constexpr uint32_t kTerminateQn = 2;

// Read Request header (s.4.4).
inline constexpr uint32_t kSinkStagOffset = 0;
inline constexpr uint32_t kSinkToOffset = 4;
inline constexpr uint32_t kReadSizeOffset = 12;
inline constexpr uint32_t kSourceStagOffset = 16;
inline constexpr uint32_t kSourceToOffset = 20;
inline constexpr uint32_t kReadRequestSize = 28;

struct ReadRequest {
  uint32_t sink_stag = 0;
  uint64_t sink_to = 0;
  uint32_t size = 0;
  uint32_t source_stag = 0;
  uint64_t source_to = 0;
  friend constexpr bool operator==(const ReadRequest&, const ReadRequest&) = default;
};

/// Nothing when `in` is too short.
[[nodiscard]] inline std::optional<ReadRequest> parse_read_request(base::ByteView in) {
  if (in.size() < kReadRequestSize) return std::nullopt;
  const uint8_t* p = in.data();
  return ReadRequest{.sink_stag = base::load_be32(p + kSinkStagOffset),
                     .sink_to = base::load_be64(p + kSinkToOffset),
                     .size = base::load_be32(p + kReadSizeOffset),
                     .source_stag = base::load_be32(p + kSourceStagOffset),
                     .source_to = base::load_be64(p + kSourceToOffset)};
}

/// Writes kReadRequestSize octets.
inline void emit(const ReadRequest& r, uint8_t* out) {
  base::store_be32(out + kSinkStagOffset, r.sink_stag);
  base::store_be64(out + kSinkToOffset, r.sink_to);
  base::store_be32(out + kReadSizeOffset, r.size);
  base::store_be32(out + kSourceStagOffset, r.source_stag);
  base::store_be64(out + kSourceToOffset, r.source_to);
}

}  // namespace rnic::wire::rdmap

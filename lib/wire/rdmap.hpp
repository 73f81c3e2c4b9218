/// \file
/// RDMAP control field and the headers of Read Request, Atomic Request and Atomic Response on the
/// wire (RFC 5040 sections 4.1 and 4.4, RFC 7306 sections 4 to 6).
#pragma once

#include <cstdint>
#include <optional>

#include "base/bytes.hpp"
#include "base/endian.hpp"

namespace rnic::wire::rdmap {

// Control field (s.4.1): RV in the two high bits, two reserved bits, the opcode.
inline constexpr uint8_t kVersionShift = 6;
inline constexpr uint8_t kOpcodeMask = 0x0f;

/// RFC 5040 figure 4, RFC 7306 figure 2.
enum class Opcode : uint8_t {
  Write = 0,
  ReadRequest = 1,
  ReadResponse = 2,
  Send = 3,
  SendInvalidate = 4,
  SendSolicited = 5,
  SendSolicitedInvalidate = 6,
  Terminate = 7,
  Immediate = 8,
  ImmediateSolicited = 9,
  AtomicRequest = 10,
  AtomicResponse = 11,
};

[[nodiscard]] constexpr uint8_t control(Opcode opcode, uint8_t version) {
  return static_cast<uint8_t>(version << kVersionShift | static_cast<uint8_t>(opcode));
}
[[nodiscard]] constexpr uint8_t version_of(uint8_t control) { return control >> kVersionShift; }
[[nodiscard]] constexpr uint8_t opcode_of(uint8_t control) { return control & kOpcodeMask; }

// Queue numbers (RFC 5040 s.3, RFC 7306 s.10.2).
inline constexpr uint32_t kSendQn = 0;
inline constexpr uint32_t kReadRequestQn = 1;  ///< and Atomic Requests
inline constexpr uint32_t kTerminateQn = 2;
inline constexpr uint32_t kAtomicResponseQn = 3;
inline constexpr uint32_t kQueues = 4;

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

// Immediate Data (RFC 7306 figure 7).
inline constexpr uint32_t kImmediateSize = 8;

// Atomic Request header (RFC 7306 figure 4). The low four bits of the fourth octet are the AOpCode,
// the 28 bits before it are sent zero and not checked.
inline constexpr uint32_t kAtomicCodeOffset = 3;
inline constexpr uint8_t kAtomicCodeMask = 0x0f;
inline constexpr uint32_t kAtomicIdOffset = 4;
inline constexpr uint32_t kAtomicStagOffset = 8;
inline constexpr uint32_t kAtomicToOffset = 12;
inline constexpr uint32_t kAtomicDataOffset = 20;
inline constexpr uint32_t kAtomicMaskOffset = 28;
inline constexpr uint32_t kAtomicCompareOffset = 36;
inline constexpr uint32_t kAtomicCompareMaskOffset = 44;
inline constexpr uint32_t kAtomicRequestSize = 52;

/// RFC 7306 figure 5. Every other code is an error.
enum class AtomicCode : uint8_t { FetchAdd = 0, CompareSwap = 2 };

struct AtomicRequest {
  uint8_t code = 0;  ///< AOpCode as it came
  uint32_t id = 0;   ///< Request Identifier
  uint32_t stag = 0;
  uint64_t to = 0;
  uint64_t data = 0;  ///< Add or Swap Data
  uint64_t mask = 0;  ///< Add or Swap Mask
  uint64_t compare = 0;
  uint64_t compare_mask = 0;
  friend constexpr bool operator==(const AtomicRequest&, const AtomicRequest&) = default;
};

/// Nothing when `in` is too short.
[[nodiscard]] inline std::optional<AtomicRequest> parse_atomic_request(base::ByteView in) {
  if (in.size() < kAtomicRequestSize) return std::nullopt;
  const uint8_t* p = in.data();
  return AtomicRequest{.code = static_cast<uint8_t>(p[kAtomicCodeOffset] & kAtomicCodeMask),
                       .id = base::load_be32(p + kAtomicIdOffset),
                       .stag = base::load_be32(p + kAtomicStagOffset),
                       .to = base::load_be64(p + kAtomicToOffset),
                       .data = base::load_be64(p + kAtomicDataOffset),
                       .mask = base::load_be64(p + kAtomicMaskOffset),
                       .compare = base::load_be64(p + kAtomicCompareOffset),
                       .compare_mask = base::load_be64(p + kAtomicCompareMaskOffset)};
}

/// Writes kAtomicRequestSize octets.
inline void emit(const AtomicRequest& r, uint8_t* out) {
  base::store_be32(out, r.code & kAtomicCodeMask);
  base::store_be32(out + kAtomicIdOffset, r.id);
  base::store_be32(out + kAtomicStagOffset, r.stag);
  base::store_be64(out + kAtomicToOffset, r.to);
  base::store_be64(out + kAtomicDataOffset, r.data);
  base::store_be64(out + kAtomicMaskOffset, r.mask);
  base::store_be64(out + kAtomicCompareOffset, r.compare);
  base::store_be64(out + kAtomicCompareMaskOffset, r.compare_mask);
}

// Atomic Response header (RFC 7306 figure 6: 12 octets; the 32 of section 4 are a slip of the
// text).
inline constexpr uint32_t kAtomicOriginalOffset = 4;
inline constexpr uint32_t kAtomicResponseSize = 12;

struct AtomicResponse {
  uint32_t id = 0;        ///< of the request
  uint64_t original = 0;  ///< what the target held before
  friend constexpr bool operator==(const AtomicResponse&, const AtomicResponse&) = default;
};

/// Nothing when `in` is too short.
[[nodiscard]] inline std::optional<AtomicResponse> parse_atomic_response(base::ByteView in) {
  if (in.size() < kAtomicResponseSize) return std::nullopt;
  return AtomicResponse{.id = base::load_be32(in.data()),
                        .original = base::load_be64(in.data() + kAtomicOriginalOffset)};
}

/// Writes kAtomicResponseSize octets.
inline void emit(const AtomicResponse& r, uint8_t* out) {
  base::store_be32(out, r.id);
  base::store_be64(out + kAtomicOriginalOffset, r.original);
}

}  // namespace rnic::wire::rdmap

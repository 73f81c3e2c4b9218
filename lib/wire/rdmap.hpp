/// \file
/// RDMAP control field and the headers of Read Request, Atomic Request and Atomic Response on the
/// wire (RFC 5040 sections 4.1 and 4.4, RFC 7306 sections 4 to 6).
#pragma once

#include <cstdint>
#include <optional>

#include "base/bytes.hpp"
#include "base/endian.hpp"

namespace rnic::wire {

// Control field (s.4.1): RV in the two high bits, two reserved bits, the opcode.
inline constexpr uint8_t kRdmapVersionShift = 6;
inline constexpr uint8_t kRdmapOpcodeMask = 0x0f;

/// RFC 5040 figure 4, RFC 7306 figure 2.
enum class RdmapOpcode : uint8_t {
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

[[nodiscard]] constexpr uint8_t rdmap_control(RdmapOpcode opcode, uint8_t version) {
  return static_cast<uint8_t>(version << kRdmapVersionShift | static_cast<uint8_t>(opcode));
}
[[nodiscard]] constexpr uint8_t rdmap_version(uint8_t control) {
  return control >> kRdmapVersionShift;
}
[[nodiscard]] constexpr uint8_t rdmap_opcode(uint8_t control) { return control & kRdmapOpcodeMask; }

// Queue numbers (RFC 5040 s.3, RFC 7306 s.10.2).
inline constexpr uint32_t kRdmapSendQn = 0;
inline constexpr uint32_t kRdmapReadRequestQn = 1;  ///< for Atomic Requests, too
inline constexpr uint32_t kRdmapTerminateQn = 2;
inline constexpr uint32_t kRdmapAtomicResponseQn = 3;
inline constexpr uint32_t kRdmapQueues = 4;

// Read Request header (s.4.4).
inline constexpr uint32_t kRdmapSinkStagAt = 0;
inline constexpr uint32_t kRdmapSinkToAt = 4;
inline constexpr uint32_t kRdmapReadSizeAt = 12;
inline constexpr uint32_t kRdmapSourceStagAt = 16;
inline constexpr uint32_t kRdmapSourceToAt = 20;
inline constexpr uint32_t kRdmapReadRequestSize = 28;

struct RdmapReadRequest {
  uint32_t sink_stag = 0;
  uint64_t sink_to = 0;
  uint32_t size = 0;
  uint32_t source_stag = 0;
  uint64_t source_to = 0;
  friend constexpr bool operator==(const RdmapReadRequest&, const RdmapReadRequest&) = default;
};

/// Empty when `in` is too short.
[[nodiscard]] inline std::optional<RdmapReadRequest> parse_rdmap_read_request(base::ByteView in) {
  if (in.size() < kRdmapReadRequestSize) return std::nullopt;
  const uint8_t* p = in.data();
  return RdmapReadRequest{.sink_stag = base::load_be32(p + kRdmapSinkStagAt),
                          .sink_to = base::load_be64(p + kRdmapSinkToAt),
                          .size = base::load_be32(p + kRdmapReadSizeAt),
                          .source_stag = base::load_be32(p + kRdmapSourceStagAt),
                          .source_to = base::load_be64(p + kRdmapSourceToAt)};
}

/// Writes kRdmapReadRequestSize octets.
inline void write_rdmap(uint8_t* p, const RdmapReadRequest& r) {
  base::store_be32(p + kRdmapSinkStagAt, r.sink_stag);
  base::store_be64(p + kRdmapSinkToAt, r.sink_to);
  base::store_be32(p + kRdmapReadSizeAt, r.size);
  base::store_be32(p + kRdmapSourceStagAt, r.source_stag);
  base::store_be64(p + kRdmapSourceToAt, r.source_to);
}

// Immediate Data (RFC 7306 figure 7).
inline constexpr uint32_t kRdmapImmediateSize = 8;

// Atomic Request header (RFC 7306 figure 4). The low four bits of the fourth octet are the AOpCode,
// the 28 bits before it are sent zero and not checked.
inline constexpr uint32_t kRdmapAtomicCodeAt = 3;
inline constexpr uint8_t kRdmapAtomicCodeMask = 0x0f;
inline constexpr uint32_t kRdmapAtomicIdAt = 4;
inline constexpr uint32_t kRdmapAtomicStagAt = 8;
inline constexpr uint32_t kRdmapAtomicToAt = 12;
inline constexpr uint32_t kRdmapAtomicDataAt = 20;
inline constexpr uint32_t kRdmapAtomicMaskAt = 28;
inline constexpr uint32_t kRdmapAtomicCompareAt = 36;
inline constexpr uint32_t kRdmapAtomicCompareMaskAt = 44;
inline constexpr uint32_t kRdmapAtomicRequestSize = 52;

/// RFC 7306 figure 5. Every other code is an error.
enum class RdmapAtomicCode : uint8_t { FetchAdd = 0, CompareSwap = 2 };

struct RdmapAtomicRequest {
  uint8_t code = 0;  ///< AOpCode as it came
  uint32_t id = 0;   ///< Request Identifier
  uint32_t stag = 0;
  uint64_t to = 0;
  uint64_t data = 0;  ///< Add or Swap Data
  uint64_t mask = 0;  ///< Add or Swap Mask
  uint64_t compare = 0;
  uint64_t compare_mask = 0;
  friend constexpr bool operator==(const RdmapAtomicRequest&, const RdmapAtomicRequest&) = default;
};

/// Empty when `in` is too short.
[[nodiscard]] inline std::optional<RdmapAtomicRequest> parse_rdmap_atomic_request(
    base::ByteView in) {
  if (in.size() < kRdmapAtomicRequestSize) return std::nullopt;
  const uint8_t* p = in.data();
  return RdmapAtomicRequest{
      .code = static_cast<uint8_t>(p[kRdmapAtomicCodeAt] & kRdmapAtomicCodeMask),
      .id = base::load_be32(p + kRdmapAtomicIdAt),
      .stag = base::load_be32(p + kRdmapAtomicStagAt),
      .to = base::load_be64(p + kRdmapAtomicToAt),
      .data = base::load_be64(p + kRdmapAtomicDataAt),
      .mask = base::load_be64(p + kRdmapAtomicMaskAt),
      .compare = base::load_be64(p + kRdmapAtomicCompareAt),
      .compare_mask = base::load_be64(p + kRdmapAtomicCompareMaskAt)};
}

/// Writes kRdmapAtomicRequestSize octets.
inline void write_rdmap(uint8_t* p, const RdmapAtomicRequest& r) {
  base::store_be32(p, r.code & kRdmapAtomicCodeMask);
  base::store_be32(p + kRdmapAtomicIdAt, r.id);
  base::store_be32(p + kRdmapAtomicStagAt, r.stag);
  base::store_be64(p + kRdmapAtomicToAt, r.to);
  base::store_be64(p + kRdmapAtomicDataAt, r.data);
  base::store_be64(p + kRdmapAtomicMaskAt, r.mask);
  base::store_be64(p + kRdmapAtomicCompareAt, r.compare);
  base::store_be64(p + kRdmapAtomicCompareMaskAt, r.compare_mask);
}

// Atomic Response header (RFC 7306 figure 6: 12 octets; the 32 of section 4 are a slip of the
// text).
inline constexpr uint32_t kRdmapAtomicOriginalAt = 4;
inline constexpr uint32_t kRdmapAtomicResponseSize = 12;

struct RdmapAtomicResponse {
  uint32_t id = 0;        ///< of the request
  uint64_t original = 0;  ///< value of the target before the operation
  friend constexpr bool operator==(const RdmapAtomicResponse&,
                                   const RdmapAtomicResponse&) = default;
};

/// Empty when `in` is too short.
[[nodiscard]] inline std::optional<RdmapAtomicResponse> parse_rdmap_atomic_response(
    base::ByteView in) {
  if (in.size() < kRdmapAtomicResponseSize) return std::nullopt;
  return RdmapAtomicResponse{.id = base::load_be32(in.data()),
                             .original = base::load_be64(in.data() + kRdmapAtomicOriginalAt)};
}

/// Writes kRdmapAtomicResponseSize octets.
inline void write_rdmap(uint8_t* p, const RdmapAtomicResponse& r) {
  base::store_be32(p, r.id);
  base::store_be64(p + kRdmapAtomicOriginalAt, r.original);
}

}  // namespace rnic::wire

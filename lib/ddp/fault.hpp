/// \file
/// Errors that DDP finds in what the peer sent (RFC 5041 section 7).
#pragma once

#include <array>
#include <cstdint>

#include "base/bytes.hpp"
#include "mem/stag_table.hpp"
#include "rnic/fault.hpp"
#include "wire/ddp.hpp"

namespace rnic::ddp {

// Error types (RFC 5041 s.7.2).
inline constexpr uint8_t kLocalCatastrophic = 0x0;
inline constexpr uint8_t kTaggedBuffer = 0x1;
inline constexpr uint8_t kUntaggedBuffer = 0x2;

inline constexpr Fault kNoFault{};
inline constexpr Fault kCatastrophic{FaultLayer::Ddp, kLocalCatastrophic, 0x00, "DDP-7.2-01"};

inline constexpr Fault kTaggedInvalidStag{FaultLayer::Ddp, kTaggedBuffer, 0x00, "DDP-7.1-07"};
inline constexpr Fault kTaggedBounds{FaultLayer::Ddp, kTaggedBuffer, 0x01, "DDP-7.1-08"};
inline constexpr Fault kTaggedNotAssociated{FaultLayer::Ddp, kTaggedBuffer, 0x02, "DDP-7.1-09"};
inline constexpr Fault kTaggedWrap{FaultLayer::Ddp, kTaggedBuffer, 0x03, "DDP-7.1-10"};
inline constexpr Fault kTaggedVersion{FaultLayer::Ddp, kTaggedBuffer, 0x04, "DDP-4.1-07"};

inline constexpr Fault kUntaggedQn{FaultLayer::Ddp, kUntaggedBuffer, 0x01, "DDP-7.1-01"};
inline constexpr Fault kUntaggedNoBuffer{FaultLayer::Ddp, kUntaggedBuffer, 0x02, "DDP-7.1-02"};
inline constexpr Fault kUntaggedMsnRange{FaultLayer::Ddp, kUntaggedBuffer, 0x03, "DDP-7.1-03"};
inline constexpr Fault kUntaggedMo{FaultLayer::Ddp, kUntaggedBuffer, 0x04, "DDP-7.1-04"};
inline constexpr Fault kUntaggedTooLong{FaultLayer::Ddp, kUntaggedBuffer, 0x05, "DDP-7.1-05"};
inline constexpr Fault kUntaggedVersion{FaultLayer::Ddp, kUntaggedBuffer, 0x06, "DDP-4.1-07"};
/// The last segment came, but the segments leave octets out or repeat some: an offset was wrong.
inline constexpr Fault kUntaggedGap{FaultLayer::Ddp, kUntaggedBuffer, 0x04, "DDP-4.1-04"};
/// The peer sent after it had closed its direction.
inline constexpr Fault kAfterFinish{FaultLayer::Ddp, kLocalCatastrophic, 0x00, "DDP-6.2.1-02"};

/// RFC 5041 has no code for a ULPDU shorter than its header. It is reported as the catastrophic
/// error of DDP, since a ULPDU without a header has no STag, QN or MSN that a buffer error could
/// refer to.
inline constexpr Fault kShortHeader{FaultLayer::Ddp, kLocalCatastrophic, 0x00, "BUG-02"};

/// The tagged code for a refused access. RFC 5041 has no code for missing rights (DDP-7.2-02): they
/// are reported as RDMAP's remote protection error 0/1/02 "access rights violation", so that the
/// peer learns the true cause (siw sends 1/1/00, invalid STag).
[[nodiscard]] Fault tagged_fault(mem::AccessFault fault);

/// The segment in which a fault was found.
struct SegmentReport {
  std::array<uint8_t, wire::kDdpHeaderMax> header{};
  uint8_t header_size = 0;  ///< 14 or 18; 0 when the segment was too short to have one
  uint32_t length = 0;      ///< of the DDP segment, header included

  [[nodiscard]] base::ByteView view() const { return {header.data(), header_size}; }
};

}  // namespace rnic::ddp

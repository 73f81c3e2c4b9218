/// \file
/// The operations of RFC 7306 section 5.1 on 64 bits of memory.
#pragma once

#include <cstdint>

#include "ddp/fault.hpp"
#include "rnic/work.hpp"
#include "wire/rdmap.hpp"

namespace rnic::rdmap {

// RFC 7306 names no code for an AOpCode that does not exist and none for a request of the wrong
// size (docs/decisions).
inline constexpr Fault kUnknownAtomic{FaultLayer::Rdmap, 0x2, 0x06, "R7306-5-01"};
inline constexpr Fault kBadAtomicRequest{FaultLayer::Rdmap, 0x2, 0xff, "R7306-5-02"};
/// RFC 7306 s.8.2: "catastrophic error, localized to RDMAP stream".
inline constexpr Fault kUnalignedAtomic{FaultLayer::Rdmap, 0x2, 0x07, "R7306-5-07"};

/// The value that FetchAdd leaves: a sum in each of the fields whose highest bits `mask` marks
/// (s.5.1.1). Mask 0 is one field of 64 bits.
[[nodiscard]] constexpr uint64_t fetch_add_result(uint64_t original, uint64_t data, uint64_t mask) {
  // Without the highest bit of each field no carry can leave it; that bit itself is added modulo 2.
  return ((original & ~mask) + (data & ~mask)) ^ ((original ^ data) & mask);
}

/// The value that CmpSwap leaves (s.5.1.2).
[[nodiscard]] constexpr uint64_t compare_swap_result(uint64_t original,
                                                     const wire::RdmapAtomicRequest& request) {
  if (((request.compare ^ original) & request.compare_mask) != 0) return original;
  return (original & ~request.mask) | (request.data & request.mask);
}

[[nodiscard]] constexpr bool is_known(const wire::RdmapAtomicRequest& request) {
  return request.code == static_cast<uint8_t>(wire::RdmapAtomicCode::FetchAdd) ||
         request.code == static_cast<uint8_t>(wire::RdmapAtomicCode::CompareSwap);
}

[[nodiscard]] inline bool is_aligned(const uint8_t* target) {
  return reinterpret_cast<uintptr_t>(target) % kAtomicSize == 0;
}

/// Carries out a known request on an aligned target, in the host's byte order. It is atomic for
/// every thread that uses this function or std::atomic_ref on the target (s.5.3). \return the value
/// that the target held before
uint64_t execute(const wire::RdmapAtomicRequest& request, uint8_t* target);

}  // namespace rnic::rdmap

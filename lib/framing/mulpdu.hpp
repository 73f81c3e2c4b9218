/// \file
/// The limits of the length of a ULPDU that DDP may count on with any framing.
#pragma once

#include <cstdint>

namespace rnic::framing {

/// Smallest and largest MULPDU ever reported (RFC 5044 s.3, s.4.5).
inline constexpr uint32_t kMulpduMin = 128;
inline constexpr uint32_t kMulpduMax = 64768;
/// Room in octets below which DDP is not asked for a ULPDU: the size of a DDP header.
inline constexpr uint32_t kUsefulRoom = 18;

}  // namespace rnic::framing

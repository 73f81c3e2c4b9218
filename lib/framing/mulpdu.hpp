/// \file
/// How long a ULPDU may be: what DDP may count on, whichever framing carries it.
#pragma once

#include <cstdint>

namespace rnic::framing {

/// Smallest and largest MULPDU ever reported (RFC 5044 s.3, s.4.5).
inline constexpr uint32_t kMulpduMin = 128;
inline constexpr uint32_t kMulpduMax = 64768;
/// DDP is not asked for a shorter ULPDU: a DDP header and a little.
inline constexpr uint32_t kUsefulRoom = 18;

}  // namespace rnic::framing

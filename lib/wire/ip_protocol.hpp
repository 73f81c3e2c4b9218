/// \file
/// Numbers of IANA's registry of IP protocols: IPv4's Protocol (RFC 791) and IPv6's Next Header
/// (RFC 8200 s.4) are one space of numbers.
#pragma once

#include <cstdint>

namespace rnic::wire {

inline constexpr uint8_t kProtocolIcmp = 1;
inline constexpr uint8_t kProtocolTcp = 6;

// Numbers that only IPv6 uses.
inline constexpr uint8_t kNextHopByHop = 0;
inline constexpr uint8_t kNextRouting = 43;
inline constexpr uint8_t kNextFragment = 44;
inline constexpr uint8_t kNextIcmpv6 = 58;
inline constexpr uint8_t kNextNone = 59;
inline constexpr uint8_t kNextDestinationOptions = 60;

}  // namespace rnic::wire

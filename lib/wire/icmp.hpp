/// \file
/// ICMP (RFC 792): echo only.
#pragma once

#include <cstdint>

namespace rnic::wire {

inline constexpr uint32_t kIcmpHeader = 8;
inline constexpr uint32_t kIcmpTypeAt = 0;
inline constexpr uint32_t kIcmpCodeAt = 1;
inline constexpr uint32_t kIcmpChecksumAt = 2;
inline constexpr uint32_t kIcmpIdAt = 4;
inline constexpr uint32_t kIcmpSequenceAt = 6;

inline constexpr uint8_t kIcmpEchoReply = 0;
inline constexpr uint8_t kIcmpEchoRequest = 8;

}  // namespace rnic::wire

/// \file
/// ICMP (RFC 792) and ICMPv6 (RFC 4443): type, code, checksum, four octets that depend on the type,
/// and for an error the beginning of the packet it is about.
#pragma once

#include <cstdint>

namespace rnic::wire {

inline constexpr uint32_t kIcmpHeader = 8;
inline constexpr uint32_t kIcmpTypeAt = 0;
inline constexpr uint32_t kIcmpCodeAt = 1;
inline constexpr uint32_t kIcmpChecksumAt = 2;
inline constexpr uint32_t kIcmpIdAt = 4;
inline constexpr uint32_t kIcmpSequenceAt = 6;
inline constexpr uint32_t kIcmpRestAt = 4;  ///< pointer, MTU or unused
inline constexpr uint32_t kIcmpMtuAt = 6;   ///< fragmentation needed (RFC 1191 s.4)

inline constexpr uint8_t kIcmpEchoReply = 0;
inline constexpr uint8_t kIcmpUnreachable = 3;
inline constexpr uint8_t kIcmpSourceQuench = 4;
inline constexpr uint8_t kIcmpRedirect = 5;
inline constexpr uint8_t kIcmpEchoRequest = 8;
inline constexpr uint8_t kIcmpTimeExceeded = 11;
inline constexpr uint8_t kIcmpParameterProblem = 12;

// Codes of kIcmpUnreachable.
inline constexpr uint8_t kIcmpProtocolUnreachable = 2;
inline constexpr uint8_t kIcmpPortUnreachable = 3;
inline constexpr uint8_t kIcmpFragmentationNeeded = 4;
inline constexpr uint8_t kIcmpNetProhibited = 9;
inline constexpr uint8_t kIcmpHostProhibited = 10;
inline constexpr uint8_t kIcmpProhibited = 13;

// A code of kIcmpTimeExceeded and of kIcmpv6TimeExceeded.
inline constexpr uint8_t kIcmpReassemblyTime = 1;

inline constexpr uint8_t kIcmpv6Unreachable = 1;
inline constexpr uint8_t kIcmpv6PacketTooBig = 2;
inline constexpr uint8_t kIcmpv6TimeExceeded = 3;
inline constexpr uint8_t kIcmpv6ParameterProblem = 4;
inline constexpr uint8_t kIcmpv6FirstInformational = 128;
inline constexpr uint8_t kIcmpv6EchoRequest = 128;
inline constexpr uint8_t kIcmpv6EchoReply = 129;
inline constexpr uint8_t kIcmpv6RouterSolicitation = 133;
inline constexpr uint8_t kIcmpv6RouterAdvertisement = 134;
inline constexpr uint8_t kIcmpv6NeighbourSolicitation = 135;
inline constexpr uint8_t kIcmpv6NeighbourAdvertisement = 136;
inline constexpr uint8_t kIcmpv6Redirect = 137;

// Codes of kIcmpv6Unreachable.
inline constexpr uint8_t kIcmpv6Prohibited = 1;
inline constexpr uint8_t kIcmpv6PortUnreachable = 4;
inline constexpr uint8_t kIcmpv6SourcePolicy = 5;
inline constexpr uint8_t kIcmpv6RejectRoute = 6;

// Codes of kIcmpv6ParameterProblem.
inline constexpr uint8_t kIcmpv6BadField = 0;
inline constexpr uint8_t kIcmpv6UnknownNextHeader = 1;
inline constexpr uint8_t kIcmpv6UnknownOption = 2;
inline constexpr uint8_t kIcmpv6IncompleteChain = 3;  ///< RFC 7112

}  // namespace rnic::wire

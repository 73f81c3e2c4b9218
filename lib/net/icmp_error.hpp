/// \file
/// ICMP and ICMPv6 error messages, received and written (RFC 1122 s.3.2.2, RFC 4443 s.3).
#pragma once

#include <cstdint>
#include <optional>

#include "base/bytes.hpp"
#include "net/packet.hpp"
#include "net/routes.hpp"

namespace rnic::net {

/// Reads a whole error message with a good checksum. Empty: the message is not about a TCP packet
/// that we can have sent, quotes too little, or tells an impossible MTU (RFC 8201 s.4).
[[nodiscard]] std::optional<llp::IcmpError> read_icmp_error(base::ByteView message,
                                                            const Routes& routes);
[[nodiscard]] std::optional<llp::IcmpError> read_icmpv6_error(base::ByteView message,
                                                              const Routes& routes);

/// An error to be sent about a received packet.
struct IcmpErrorOut {
  uint8_t type = 0;
  uint8_t code = 0;
  uint32_t rest = 0;  ///< the four octets behind the checksum: pointer or MTU
};

/// True when an error may be sent about `packet`, a valid IPv4 packet from its header on: not about
/// an ICMP error, nor about a fragment that is not the first (RFC 1122 s.3.2.2). The caller judges
/// the addresses.
[[nodiscard]] bool may_report4(base::ByteView packet);
/// As may_report4(), for IPv6 (RFC 4443 s.2.4 e).
[[nodiscard]] bool may_report6(base::ByteView packet);

/// The largest error messages in octets, with IP header (RFC 1812 s.4.3.2.3, RFC 4443 s.2.4 c).
inline constexpr uint32_t kIcmpErrorMax4 = 576;
inline constexpr uint32_t kIcmpErrorMax6 = 1280;

/// Writes the message with a checksum field of 0. \return its octets, at most `room`
uint32_t write_icmp_error(uint8_t* p, uint32_t room, const IcmpErrorOut& error,
                          base::ByteView packet);

}  // namespace rnic::net

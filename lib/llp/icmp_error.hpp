/// \file
/// IcmpError: an error that the network reports about a packet, passed from the network layer to
/// the transport that sent it.
#pragma once

#include <cstdint>

#include "base/bytes.hpp"
#include "rnic/address.hpp"

namespace rnic::llp {

/// An ICMP or ICMPv6 error about a TCP packet that we may have sent (RFC 1122 s.4.2.3.9). Its form
/// was checked, but it may be forged: a transport does not believe it unless the quoted sequence
/// number is outstanding (RFC 5927).
struct IcmpError {
  /// The meaning of the error for the connection (RFC 1122 s.4.2.3.9, RFC 5461).
  enum class Kind : uint8_t {
    PacketTooBig,  ///< fragmentation needed, or ICMPv6 packet too big
    Soft,          ///< may pass: net or host unreachable, time exceeded, parameter problem
    Hard,          ///< protocol or port unreachable, administratively prohibited
    SourceQuench,  ///< to be ignored (RFC 6633)
  };
  Kind kind = Kind::Soft;
  uint8_t type = 0;
  uint8_t code = 0;
  uint32_t mtu = 0;  ///< PacketTooBig: next-hop MTU; 0: an old router did not say (RFC 1191)
  uint32_t quoted_length = 0;  ///< total octets of the quoted IP packet, as its header says
  IpAddress source;            ///< of the quoted packet: ours
  IpAddress destination;       ///< of the quoted packet: the peer's
  base::ByteView tcp;          ///< the quoted part of the TCP header, 8 octets at least
};

}  // namespace rnic::llp

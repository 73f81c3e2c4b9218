/// \file
/// What passes between an interface and the transport.
#pragma once

#include <cstdint>

#include "base/bytes.hpp"
#include "port/port.hpp"
#include "rnic/address.hpp"

namespace rnic::net {

/// A validated packet for this host; views into the received frame, or into the reassembler.
struct IpIn {
  IpAddress source;
  IpAddress destination;
  uint8_t protocol = 0;
  uint8_t ecn = 0;
  bool l4_checksum_good = false;  ///< the port vouches for the transport checksum
  base::ByteView payload;         ///< exactly the transport's octets, no padding
};

/// A TCP segment for this host, out of a validated packet. Its addresses are the interface's, not
/// copies: they hold as long as the payload.
struct TcpIn {
  const IpAddress& source;
  const IpAddress& destination;
  uint8_t ecn = 0;
  bool l4_checksum_good = false;  ///< the port vouches for the transport checksum
  base::ByteView payload;         ///< exactly the transport's octets, no padding
};

/// An outgoing packet being built.
struct TxFrame {
  port::Packet packet;
  uint8_t* l4 = nullptr;  ///< where the IP payload starts
  uint32_t l4_room = 0;   ///< octets of IP payload that fit the MTU
  bool l4_checksum_open = false;
  IpAddress source;
  IpAddress destination;
  uint8_t traffic_class = 0;  ///< DSCP << 2 | ECN; may be set between begin() and send()
  uint8_t hop_limit = 0;      ///< TTL; 0: the interface's default; likewise
};

/// What an error message means for the connection it is about (RFC 1122 s.4.2.3.9, RFC 5461).
enum class IcmpErrorKind : uint8_t {
  PacketTooBig,  ///< fragmentation needed, or ICMPv6 packet too big
  Soft,          ///< may pass: net or host unreachable, time exceeded, parameter problem
  Hard,          ///< protocol or port unreachable, administratively prohibited
  SourceQuench,  ///< to be ignored (RFC 6633)
};

/// An ICMP or ICMPv6 error about a TCP packet that we may have sent. Its form is valid, its truth
/// is not known: anybody can write one.
struct IcmpErrorIn {
  IcmpErrorKind kind = IcmpErrorKind::Soft;
  uint8_t type = 0;
  uint8_t code = 0;
  uint32_t mtu = 0;            ///< PacketTooBig: next-hop MTU; 0: an old router did not say
  uint32_t quoted_length = 0;  ///< total octets of the quoted packet, as its header says
  IpAddress source;            ///< of the quoted packet: one of ours
  IpAddress destination;       ///< of the quoted packet
  base::ByteView l4;           ///< what is quoted of the TCP header, 8 octets at least
};

/// Who is told.
class IcmpErrorUser {
 public:
  virtual ~IcmpErrorUser() = default;
  /// Views into the frame: valid during the call.
  virtual void icmp_error(const IcmpErrorIn& error, base::Now now) = 0;
};

}  // namespace rnic::net

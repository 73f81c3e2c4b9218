/// \file
/// The types that pass between an interface and the transport.
#pragma once

#include <cstdint>

#include "base/bytes.hpp"
#include "llp/icmp_error.hpp"
#include "port/port.hpp"
#include "rnic/address.hpp"

namespace rnic::net {

/// A validated packet for this host. Its payload is a view into the received frame or the
/// reassembler.
struct IpIn {
  IpAddress source;
  IpAddress destination;
  uint8_t protocol = 0;
  uint8_t ecn = 0;
  bool l4_checksum_good = false;  ///< the port vouches for the transport checksum
  base::ByteView payload;         ///< exactly the transport's octets, no padding
};

/// A TCP segment for this host, from a validated packet. Its addresses are references into the
/// interface, valid as long as the payload.
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
  uint8_t* l4 = nullptr;  ///< start of the IP payload
  uint32_t l4_room = 0;   ///< octets of IP payload that fit the MTU
  bool l4_checksum_open = false;
  IpAddress source;
  IpAddress destination;
  uint8_t traffic_class = 0;  ///< DSCP << 2 | ECN; may be set between begin() and send()
  uint8_t hop_limit = 0;      ///< TTL; 0: the interface's default; may be set at the same time
};

/// The user of an interface that is told of each ICMP error which a packet of ours may have caused.
class IcmpErrorUser {
 public:
  virtual ~IcmpErrorUser() = default;
  /// Takes an error. Its views into the frame are valid during the call.
  virtual void icmp_error(const llp::IcmpError& error, base::Now now) = 0;
};

}  // namespace rnic::net

/// \file
/// The types that pass between an interface and the transport.
#pragma once

#include <array>
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

/// What is asked of an outgoing packet, and what it may be.
struct TxTerms {
  uint32_t l4_room = 0;  ///< octets of IP payload that fit the MTU
  bool l4_checksum_open = false;
  uint8_t traffic_class = 0;  ///< DSCP << 2 | ECN; may be set between begin() and send()
  uint8_t hop_limit = 0;      ///< TTL; 0: the interface's default; may be set at the same time
  IpAddress source;
  IpAddress destination;
};

/// An outgoing packet being built.
struct TxFrame : TxTerms {
  port::Packet packet;
  uint8_t* l4 = nullptr;  ///< start of the IP payload
};

/// Outgoing packets being built that have their terms in common.
struct TxRun : TxTerms {
  static constexpr uint32_t kMost = 16;

  uint32_t count = 0;  ///< packets taken
  uint32_t l4_at = 0;  ///< octets in front of the IP payload of each
  std::array<port::Packet, kMost> packets;
};

/// The user of an interface that is told of each ICMP error which a packet of ours may have caused.
class IcmpErrorUser {
 public:
  virtual ~IcmpErrorUser() = default;
  /// Takes an error. Its views into the frame are valid during the call.
  virtual void icmp_error(const llp::IcmpError& error, base::Now now) = 0;
};

}  // namespace rnic::net

/// \file
/// What --so_flags may say, and what it means for the stack and the sockets.
#pragma once

#include <set>
#include <string>

#include "base/fail.hpp"
#include "rnic/address.hpp"
#include "tcp/config.hpp"

namespace rnic::packetdrill {

struct Setup {
  tcp::Config tcp;
  IpAddress local;                   ///< the address of an unbound socket
  uint32_t mtu = 1500;               ///< octets of the largest IP packet
  uint32_t send_buffer = 256 << 10;  ///< SO_SNDBUF at first, octets
  uint32_t receive_buffer = 540000;  ///< SO_RCVBUF at first, octets
  /// Segments that end here (numbers relative to the SYN) carry PSH, too. A kernel with
  /// segmentation offload marks the end of each burst; RFC 9293 s.3.9.1.2 leaves that to the
  /// sender.
  std::set<uint32_t> push_at;
};

/// "cc=reno,iw=10,mtu=1500": see the table in setup.cpp. Unknown keys and bad values are errors
/// that name them.
[[nodiscard]] Result<Setup> parse_setup(const std::string& flags);

}  // namespace rnic::packetdrill

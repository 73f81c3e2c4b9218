/// \file
/// The configuration of the socket driver.
#pragma once

#include <cstdint>
#include <vector>

#include "base/time.hpp"
#include "rnic/address.hpp"

namespace rnic::socket {

/// The keys of [socket] in docs/settings.md, and those of [tcp] that a socket has, too.
struct Config {
  using Duration = base::Duration;
  static constexpr Duration ms(int64_t n) { return std::chrono::milliseconds(n); }

  uint32_t send_buffer = 128u << 10;    ///< octets a connection holds until the system takes them
  uint32_t receive_buffer = 256u << 10;  ///< octets read at once; one buffer a device
  uint32_t backlog = 128;               ///< connections that wait to be taken from the system
  uint32_t system_send_buffer = 0;      ///< SO_SNDBUF, octets; 0: the system decides
  uint32_t system_receive_buffer = 0;   ///< SO_RCVBUF, octets; 0: the system decides
  bool align = true;                    ///< MSG_EOR behind every segment's worth of FPDUs

  std::vector<IpAddress> addresses;  ///< of our ends; none: all that the system has
  uint32_t mtu = 1500;               ///< octets of an IP packet, where nothing better is known
  uint32_t max_connections = 1024;
  uint32_t max_listeners = 64;
  bool pack_records = true;  ///< several small records in one segment
  bool nagle = false;
  bool keep_alive = false;
  Duration keep_alive_idle = ms(7'200'000);
  Duration keep_alive_interval = ms(75'000);
  uint32_t keep_alive_count = 9;
  Duration user_timeout = ms(100'000);     ///< sent octets stay unacknowledged for so long
  Duration connect_timeout = ms(180'000);  ///< an active open is given up after
  Duration close_timeout = ms(5'000);      ///< our FIN is out and the peer's does not come: RST
};

}  // namespace rnic::socket

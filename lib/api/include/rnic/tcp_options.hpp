/// \file
/// What an application chooses for TCP below one connection.
#pragma once

#include <chrono>
#include <cstdint>
#include <optional>

#include "rnic/transport.hpp"

namespace rnic {

/// Options of TCP for one connection, or for those that a listener accepts; the configuration
/// (section `tcp`) decides what is not set here. Times are 1 to 4,294,967,295 ms (49 days). A call
/// that is given a value out of its range answers InvalidArgument, and begins nothing.
///
/// Over sockets of the system ECN, pacing and congestion control are the system's, keep-alive
/// counts in whole seconds, and its TCP may have narrower ranges: a call that sets what it does not
/// take answers Unsupported.
struct TcpOptions {
  std::optional<CongestionControl> congestion_control;
  std::optional<Ecn> ecn;      ///< takes effect at the handshake only
  std::optional<bool> pacing;  ///< spread a window over the round trip
  std::optional<bool> nagle;   ///< gather small sends (RFC 9293 s.3.7.4); of an RDMA connection,
                               ///< small messages (RFC 5044 s.A.2)
  std::optional<bool> keep_alive;  ///< probe a silent peer (RFC 9293 s.3.8.4)
  std::optional<std::chrono::milliseconds> keep_alive_idle;      ///< silence before the first probe
  std::optional<std::chrono::milliseconds> keep_alive_interval;  ///< between probes
  std::optional<uint32_t> keep_alive_count;  ///< probes without an answer before the end
  std::optional<std::chrono::milliseconds> user_timeout;  ///< time without progress that ends it
  std::optional<uint8_t> dscp;                            ///< 0..63 (RFC 2474)
  std::optional<uint8_t> hop_limit;                       ///< TTL
  std::optional<uint16_t> max_segment;                    ///< octets of a segment's payload at most

  friend bool operator==(const TcpOptions&, const TcpOptions&) = default;
};

}  // namespace rnic

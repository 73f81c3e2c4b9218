/// \file
/// The choices for one connection (framing, congestion control, ECN), and the ways in which it
/// ends.
#pragma once

#include <array>
#include <cstdint>
#include <string_view>

namespace rnic {

/// The framing between TCP and DDP.
enum class Framing : uint8_t {
  Mpa,  ///< RFC 5044
  Tuf,  ///< draft-ietf-tsvwg-tcp-ulp-frame-00: it has no CRC and does not use `mpa.*`
};

/// The state of a TCP connection as an application sees it.
enum class StreamState : uint8_t {
  Connecting,  ///< the handshake is under way; octets to be sent wait
  Open,        ///< established: either direction may be finished already
  Ended,       ///< TCP is done with it; a StreamEnd tells how it ended
};
[[nodiscard]] const char* to_string(StreamState state);

/// How a connection ended.
enum class StreamEnd : uint8_t {
  Closed,       ///< both directions finished, everything acknowledged
  PeerReset,    ///< the peer sent RST
  TimedOut,     ///< the peer did not answer for tcp.user_timeout, or tcp.connect_timeout
  Refused,      ///< nobody listens at the peer's port
  Aborted,      ///< this side sent RST
  Unreachable,  ///< a verified ICMP error said that there is no way to the peer
};
[[nodiscard]] const char* to_string(StreamEnd end);

enum class CongestionControl : uint8_t {
  NewReno,  ///< RFC 6582
  Cubic,    ///< RFC 9438
  Dctcp,    ///< RFC 8257: at both ends, inside a data center only
};
/// Names of the congestion controls in a configuration, in the order of the enumerators.
inline constexpr std::array<std::string_view, 3> kCongestionControlNames{"newreno", "cubic",
                                                                         "dctcp"};

/// Explicit congestion notification (RFC 3168).
enum class Ecn : uint8_t {
  Off,     ///< never
  Accept,  ///< when the peer asks for it
  Offer,   ///< ask for it, and accept
};

/// The mode in which a framed stream is sent (draft-ietf-tsvwg-tcp-ulp-frame-00, appendix A). The
/// two directions are independent (s.4).
enum class FramedSendMode : uint8_t {
  Plain,    ///< octets without any boundary
  Atomic,   ///< a frame is one TCP segment, nothing is added to the stream
  Align,    ///< alignment mode, s.5: every segment begins with a header that has length and key
  Markers,  ///< marker mode, s.6: markers in the stream at intervals point to the next frame
};
[[nodiscard]] const char* to_string(FramedSendMode mode);

/// The mode that the receiver of a framed stream expects. A stream sent in Atomic mode is received
/// in Plain.
enum class FramedReceiveMode : uint8_t { Plain, Align, Markers };
[[nodiscard]] const char* to_string(FramedReceiveMode mode);

}  // namespace rnic

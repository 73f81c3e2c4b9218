/// \file
/// What is chosen for one connection, and how it ends.
#pragma once

#include <array>
#include <cstdint>
#include <string_view>

namespace rnic {

/// What stands between TCP and DDP.
enum class Framing : uint8_t {
  Mpa,  ///< RFC 5044
  Tuf,  ///< draft-ietf-tsvwg-tcp-ulp-frame-00: without a CRC, and without what `mpa.*` says
};

/// What an application sees of a connection of TCP.
enum class StreamState : uint8_t {
  Connecting,  ///< the handshake is under way; what is sent waits
  Open,        ///< established: either direction may be finished already
  Ended,       ///< TCP has done with it; with a StreamEnd
};
[[nodiscard]] const char* to_string(StreamState state);

/// How a connection ended.
enum class StreamEnd : uint8_t {
  Closed,       ///< both directions finished, everything acknowledged
  PeerReset,    ///< the peer sent RST
  TimedOut,     ///< the peer did not answer for tcp.user_timeout, or tcp.connect_timeout
  Refused,      ///< nobody listens at the peer's port
  Aborted,      ///< by this side
  Unreachable,  ///< the network told, verifiably, that there is no way to the peer (ICMP)
};
[[nodiscard]] const char* to_string(StreamEnd end);

enum class CongestionControl : uint8_t {
  NewReno,  ///< RFC 6582
  Cubic,    ///< RFC 9438
  Dctcp,    ///< RFC 8257: at both ends, inside a data center only
};
/// Their names in a configuration, in the order of the enumerators.
inline constexpr std::array<std::string_view, 3> kCongestionControlNames{"newreno", "cubic",
                                                                         "dctcp"};

/// Explicit congestion notification (RFC 3168).
enum class Ecn : uint8_t {
  Off,     ///< never
  Accept,  ///< when the peer asks for it
  Offer,   ///< ask for it, and accept
};

/// What the sender of a framed stream does (draft-ietf-tsvwg-tcp-ulp-frame-00, appendix A). The two
/// directions are independent (s.4).
enum class FramedSendMode : uint8_t {
  Plain,    ///< octets without any boundary
  Atomic,   ///< a frame is one TCP segment, nothing is added to the stream
  Align,    ///< alignment mode, s.5: every segment begins with a header that has length and key
  Markers,  ///< marker mode, s.6: markers in the stream at intervals point to the next frame
};
[[nodiscard]] const char* to_string(FramedSendMode mode);

/// What the receiver expects. A stream of a sender in Atomic mode is received in Plain.
enum class FramedReceiveMode : uint8_t { Plain, Align, Markers };
[[nodiscard]] const char* to_string(FramedReceiveMode mode);

}  // namespace rnic

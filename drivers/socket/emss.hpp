/// \file
/// The effective MSS of a socket: the octets that fit a segment now.
#pragma once

#include <chrono>
#include <cstdint>

#include "base/time.hpp"
#include "socket/calls.hpp"

namespace rnic::socket {

/// The system's facts about the segments of a connection; 0: it does not tell.
struct SegmentFacts {
  uint32_t send_mss = 0;        ///< tcpi_snd_mss of TCP_INFO, or TCP_MAXSEG
  uint32_t path_mtu = 0;        ///< IP_MTU or IPV6_MTU, octets of an IP packet
  uint32_t configured_mtu = 0;  ///< device.mtu
  bool v4 = true;
};

/// Octets of a segment if the system tells nothing: draft-ietf-rddp-mpa-00 s.5.1.1.
inline constexpr uint32_t kUsualEmss = 1460;
inline constexpr uint32_t kSmallPathEmss = 536;

/// EMSS by the best known fact: the system's own value; the path's MTU less the expected headers
/// with TCP timestamps (RFC 5044 s.5.1); 1460, or 536 if the configured MTU is below Ethernet's.
[[nodiscard]] uint32_t choose_emss(const SegmentFacts& facts);

/// Asks the system about a connected socket. \param v4 the peer's address is of IPv4
[[nodiscard]] SegmentFacts ask_system(System& system, int descriptor, bool v4,
                                      uint32_t configured_mtu);

/// EMSS as a connection knows it. The system changes it by what it learns of the path, for which a
/// round trip is needed at least, so it is not asked at each segment.
class KnownEmss {
 public:
  static constexpr base::Duration kAskedAgain = std::chrono::milliseconds(1);

  [[nodiscard]] uint32_t value() const { return value_; }
  void set(uint32_t emss) { value_ = emss; }
  /// \return whether the system is to be asked now; the next time is later then
  [[nodiscard]] bool ask(base::Now now) {
    if (now < again_) return false;
    again_ = now + kAskedAgain;
    return true;
  }

 private:
  uint32_t value_ = 0;
  base::Now again_{};
};

}  // namespace rnic::socket

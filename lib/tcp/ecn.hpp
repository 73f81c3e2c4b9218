/// \file
/// What a connection remembers of explicit congestion notification (RFC 3168, RFC 8257).
#pragma once

#include <array>
#include <cstdint>

#include "base/seq32.hpp"

namespace rnic::tcp {

/// The two ECN bits of the traffic class (RFC 3168 s.5).
namespace ecn_codepoint {
inline constexpr uint8_t kNotEct = 0;
inline constexpr uint8_t kEct1 = 1;
inline constexpr uint8_t kEct0 = 2;
inline constexpr uint8_t kCe = 3;
}  // namespace ecn_codepoint

struct EcnState {
  static constexpr uint32_t kMaxOwed = 4;

  bool offered = false;    ///< our SYN asked
  bool fell_back = false;  ///< a SYN of either side did not: no ECT any more (RFC 3168 s.6.1.1)
  bool on = false;         ///< agreed on the SYNs
  bool echo = false;       ///< ECN-Echo goes on what we send; under DCTCP this is DCTCP.CE
  bool cwr_due = false;    ///< CWR goes on the next new data
  bool reduced = false;    ///< `reduced_until` is one
  uint8_t holds = 0;       ///< consecutive marks that met a window of one segment
  uint8_t owed_count = 0;
  uint64_t reduced_until = 0;  ///< SND.NXT at the last reduction: marks below it are answered
  /// DCTCP: ACKs owed for what came before a change of CE, oldest first. They alternate: the newest
  /// reports the opposite of `echo`.
  std::array<base::Seq32, kMaxOwed> owed{};

  /// New data may be sent as ECN-capable.
  [[nodiscard]] bool sends_ect() const { return on && !fell_back; }
};

}  // namespace rnic::tcp

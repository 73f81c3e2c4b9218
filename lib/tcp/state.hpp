/// \file
/// The eleven states of RFC 9293 section 3.3.2, one bit each, so that "in any of these" is one AND.
#pragma once

#include <cstdint>

namespace rnic::tcp {

enum class State : uint16_t {
  Closed = 1 << 0,
  Listen = 1 << 1,  ///< lives in the listener table, never in a connection
  SynSent = 1 << 2,
  SynReceived = 1 << 3,
  Established = 1 << 4,
  FinWait1 = 1 << 5,
  FinWait2 = 1 << 6,
  CloseWait = 1 << 7,
  Closing = 1 << 8,
  LastAck = 1 << 9,
  TimeWait = 1 << 10,
};

template <typename... States>
[[nodiscard]] constexpr bool in_any(State state, States... states) {
  return (static_cast<uint16_t>(state) & (static_cast<uint16_t>(states) | ...)) != 0;
}

/// The peer may still send us octets.
[[nodiscard]] constexpr bool receives(State s) {
  return in_any(s, State::Established, State::FinWait1, State::FinWait2);
}
/// Both sequence spaces are known (SYN-RECEIVED and later).
[[nodiscard]] constexpr bool synchronized(State s) {
  return !in_any(s, State::Closed, State::Listen, State::SynSent);
}

[[nodiscard]] const char* to_string(State state);

}  // namespace rnic::tcp

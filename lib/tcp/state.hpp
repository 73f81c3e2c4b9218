/// \file
/// The eleven states of RFC 9293 section 3.3.2 and their legal transitions.
#pragma once

#include <cstdint>

#include "base/transitions.hpp"

namespace rnic::tcp {

enum class State : uint8_t {
  Closed,
  Listen,  ///< held by the listener table, never by a connection
  SynSent,
  SynReceived,
  Established,
  FinWait1,
  FinWait2,
  CloseWait,
  Closing,
  LastAck,
  TimeWait,  ///< held by TimeWaitTable, never by a connection
};

/// The transitions of a connection (RFC 9293 figure 5). It starts in CLOSED and returns there from
/// every state: by a RST, a time-out, an abort, or when TimeWaitTable takes over. If the user
/// closes before ESTABLISHED, the FIN waits for that state.
inline constexpr base::Transitions<State, State::TimeWait> kTransitions{
    {State::Closed, {State::SynSent, State::SynReceived}},
    {State::SynSent, {State::SynReceived, State::Established, State::Closed}},
    {State::SynReceived, {State::Established, State::Closed}},
    {State::Established, {State::FinWait1, State::CloseWait, State::Closed}},
    {State::FinWait1, {State::FinWait2, State::Closing, State::Closed}},
    {State::FinWait2, {State::Closed}},
    {State::CloseWait, {State::LastAck, State::Closed}},
    {State::Closing, {State::Closed}},
    {State::LastAck, {State::Closed}},
};

template <typename... States>
[[nodiscard]] constexpr bool in_any(State state, States... states) {
  return ((uint32_t{1} << static_cast<uint8_t>(state)) &
          ((uint32_t{1} << static_cast<uint8_t>(states)) | ...)) != 0;
}

/// The peer may still send us octets.
[[nodiscard]] constexpr bool receives(State state) {
  return in_any(state, State::Established, State::FinWait1, State::FinWait2);
}
/// New octets may be sent: our FIN has no sequence number yet.
[[nodiscard]] constexpr bool sends(State state) {
  return in_any(state, State::Established, State::CloseWait);
}
/// Both sequence spaces are known (SYN-RECEIVED and later).
[[nodiscard]] constexpr bool synchronized(State state) {
  return !in_any(state, State::Closed, State::Listen, State::SynSent);
}

[[nodiscard]] const char* to_string(State state);

}  // namespace rnic::tcp

/// \file
/// The states of an Endpoint and their legal transitions.
#pragma once

#include <cstdint>

#include "base/transitions.hpp"

namespace rnic::rdmap {

enum class EndpointState : uint8_t {
  Idle,         ///< no connection yet
  Connected,    ///< bound to a framing
  Closing,      ///< disconnect() was called: work posted before is carried out
  HalfClosed,   ///< that work is done, and the framing was told to close
  Terminating,  ///< a Terminate of ours waits to be pulled
  Error,        ///< nothing is sent or delivered any more
  Closed,       ///< ended in order, or before there was a connection
};
[[nodiscard]] const char* to_string(EndpointState state);

inline constexpr base::Transitions<EndpointState, EndpointState::Closed> kEndpointTransitions{
    {EndpointState::Idle, {EndpointState::Connected, EndpointState::Error, EndpointState::Closed}},
    {EndpointState::Connected,
     {EndpointState::Closing, EndpointState::Terminating, EndpointState::Error,
      EndpointState::Closed}},
    {EndpointState::Closing,
     {EndpointState::HalfClosed, EndpointState::Terminating, EndpointState::Error,
      EndpointState::Closed}},
    // DDP-6.2.1-02: no Terminate follows a FIN, as nobody would read it.
    {EndpointState::HalfClosed, {EndpointState::Error, EndpointState::Closed}},
    {EndpointState::Terminating, {EndpointState::Error}},
    // The stream ends, or abort() is called, where the error has ended its use before.
    {EndpointState::Error, {EndpointState::Error}},
};

/// \return whether work is carried out and segments are delivered
[[nodiscard]] constexpr bool is_running(EndpointState state) {
  return state >= EndpointState::Connected && state <= EndpointState::HalfClosed;
}

}  // namespace rnic::rdmap

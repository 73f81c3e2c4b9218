/// \file
/// The states of a Connection and their legal transitions.
#pragma once

#include <cstdint>

#include "base/transitions.hpp"

namespace rnic::device {

enum class ConnectionState : uint8_t {
  Connecting,  ///< start-up under way
  Requested,   ///< responder: the application has to answer
  Answered,    ///< responder: accept() or reject() was called
  Running,     ///< full operation
  Failed,      ///< start-up failed; the stream is being closed
  Lingering,   ///< responder: the peer was rejected and may close first
  Ended,       ///< the stream is gone; to be reaped
};

inline constexpr base::Transitions<ConnectionState, ConnectionState::Ended> kConnectionTransitions{
    {ConnectionState::Connecting,
     {ConnectionState::Requested, ConnectionState::Running, ConnectionState::Failed,
      ConnectionState::Ended}},
    {ConnectionState::Requested,
     {ConnectionState::Answered, ConnectionState::Failed, ConnectionState::Ended}},
    // Back to Requested: there was no memory for the answer.
    {ConnectionState::Answered,
     {ConnectionState::Requested, ConnectionState::Running, ConnectionState::Failed,
      ConnectionState::Ended}},
    // Failed: the RTR did not come.
    {ConnectionState::Running, {ConnectionState::Failed, ConnectionState::Ended}},
    {ConnectionState::Failed, {ConnectionState::Lingering, ConnectionState::Ended}},
    // Back to Failed: the peer has closed, or has had its time to.
    {ConnectionState::Lingering, {ConnectionState::Failed, ConnectionState::Ended}},
};

}  // namespace rnic::device

/// \file
/// The states of a queue pair as the application sees them, and their legal transitions.
#pragma once

#include "base/transitions.hpp"
#include "rdmap/endpoint_state.hpp"
#include "rnic/queue_pair.hpp"

namespace rnic::device {

inline constexpr base::Transitions<QueuePairState, QueuePairState::Error>
    kQueuePairStateTransitions{
        // To Error: it was drained or moved there without a connection, or the start-up has failed.
        {QueuePairState::Idle, {QueuePairState::Rts, QueuePairState::Error}},
        {QueuePairState::Rts,
         {QueuePairState::Closing, QueuePairState::Terminate, QueuePairState::Error}},
        {QueuePairState::Closing, {QueuePairState::Terminate, QueuePairState::Error}},
        {QueuePairState::Terminate, {QueuePairState::Error}},
        // To Idle: the application wants another connection.
        {QueuePairState::Error, {QueuePairState::Idle}},
    };

/// A queue pair has no state of its own: it follows from the state of its endpoint.
[[nodiscard]] constexpr QueuePairState state_of(rdmap::EndpointState endpoint) {
  switch (endpoint) {
    case rdmap::EndpointState::Idle: return QueuePairState::Idle;
    case rdmap::EndpointState::Connected: return QueuePairState::Rts;
    case rdmap::EndpointState::Closing:
    case rdmap::EndpointState::HalfClosed: return QueuePairState::Closing;
    case rdmap::EndpointState::Terminating: return QueuePairState::Terminate;
    case rdmap::EndpointState::Error:
    case rdmap::EndpointState::Closed: break;
  }
  return QueuePairState::Error;
}

}  // namespace rnic::device

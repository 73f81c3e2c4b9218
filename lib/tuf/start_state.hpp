/// \file
/// The states of a TUF session and their legal transitions.
#pragma once

#include <cstdint>

#include "base/transitions.hpp"

namespace rnic::tuf {

enum class StartState : uint8_t {
  Idle,           ///< not established
  SendRequest,    ///< initiator: Request not pulled entirely
  AwaitReply,     ///< initiator
  SendGo,         ///< initiator: the Reply accepts; Go not pulled entirely
  AwaitRequest,   ///< responder
  AwaitDecision,  ///< responder: the owner has not answered yet
  SendReply,      ///< responder: accepting Reply not pulled entirely
  AwaitGo,        ///< responder
  SendReject,     ///< responder: rejecting Reply not pulled entirely
  Done,           ///< framed
  Failed,         ///< the stream is being closed
  Ended,          ///< the stream is gone
};

inline constexpr base::Transitions<StartState, StartState::Ended> kStartTransitions{
    // The start-up fails at once if there is no memory for the Request.
    {StartState::Idle,
     {StartState::SendRequest, StartState::AwaitRequest, StartState::Failed, StartState::Ended}},
    {StartState::SendRequest, {StartState::AwaitReply, StartState::Failed, StartState::Ended}},
    {StartState::AwaitReply, {StartState::SendGo, StartState::Failed, StartState::Ended}},
    {StartState::SendGo, {StartState::Done, StartState::Failed, StartState::Ended}},
    {StartState::AwaitRequest, {StartState::AwaitDecision, StartState::Failed, StartState::Ended}},
    {StartState::AwaitDecision,
     {StartState::SendReply, StartState::SendReject, StartState::Failed, StartState::Ended}},
    {StartState::SendReply, {StartState::AwaitGo, StartState::Failed, StartState::Ended}},
    {StartState::AwaitGo, {StartState::Done, StartState::Failed, StartState::Ended}},
    {StartState::SendReject, {StartState::Failed, StartState::Ended}},
    {StartState::Done, {StartState::Ended}},
    {StartState::Failed, {StartState::Ended}},
};

/// The start-up is under way.
[[nodiscard]] constexpr bool is_starting(StartState state) {
  return state >= StartState::SendRequest && state <= StartState::SendReject;
}

}  // namespace rnic::tuf

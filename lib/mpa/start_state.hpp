/// \file
/// The states of an MPA session and their legal transitions.
#pragma once

#include <cstdint>

#include "base/transitions.hpp"

namespace rnic::mpa {

/// From the start-up (RFC 5044 s.7.1.2, RFC 6581) to the end of the stream.
enum class StartState : uint8_t {
  Idle,           ///< not established
  SendRequest,    ///< initiator: Request not pulled entirely
  AwaitReply,     ///< initiator
  AwaitRequest,   ///< responder
  AwaitDecision,  ///< responder: the owner has not answered yet
  SendReply,      ///< responder: accepting Reply not pulled entirely
  SendReject,     ///< responder: rejecting Reply not pulled entirely
  Delayed,        ///< initiator, full operation: its first FPDU waits on purpose (BUG-14)
  Unheard,    ///< initiator, full operation: it has sent after the delay, and nothing has come from
              ///< the peer
  AwaitRtr,   ///< responder, full operation: the RTR has not come (RFC 6581 s.9)
  AwaitFpdu,  ///< responder, full operation: no FPDU has come, none may leave
  Done,       ///< full operation in both directions
  Left,       ///< rejected: TCP is open, for streaming
  HandedOver,  ///< like Left, but the stream has another user
  Failed,      ///< the stream is being closed
  Ended,       ///< the stream is gone
};

inline constexpr base::Transitions<StartState, StartState::Ended> kStartTransitions{
    {StartState::Idle, {StartState::SendRequest, StartState::AwaitRequest, StartState::Ended}},
    {StartState::SendRequest, {StartState::AwaitReply, StartState::Failed, StartState::Ended}},
    {StartState::AwaitReply,
     {StartState::Delayed, StartState::Done, StartState::Left, StartState::Failed,
      StartState::Ended}},
    // A Request of the draft's revision is answered by a Reply with our revision (RFC 5044
    // s.C.2.1).
    {StartState::AwaitRequest,
     {StartState::AwaitDecision, StartState::SendReject, StartState::Failed, StartState::Ended}},
    {StartState::AwaitDecision,
     {StartState::SendReply, StartState::SendReject, StartState::Failed, StartState::Ended}},
    {StartState::SendReply,
     {StartState::AwaitRtr, StartState::AwaitFpdu, StartState::Failed, StartState::Ended}},
    {StartState::SendReject, {StartState::Left, StartState::Failed, StartState::Ended}},
    {StartState::Delayed, {StartState::Unheard, StartState::Done, StartState::Ended}},
    {StartState::Unheard, {StartState::Done, StartState::Ended}},
    {StartState::AwaitRtr, {StartState::Done, StartState::Failed, StartState::Ended}},
    {StartState::AwaitFpdu, {StartState::Done, StartState::Ended}},
    {StartState::Done, {StartState::Ended}},
    {StartState::Left, {StartState::HandedOver, StartState::Ended}},
    {StartState::HandedOver, {StartState::Ended}},
    {StartState::Failed, {StartState::Ended}},
};

/// The start-up is under way.
[[nodiscard]] constexpr bool is_starting(StartState state) {
  return state >= StartState::SendRequest && state <= StartState::SendReject;
}
/// The peer's start frame is awaited.
[[nodiscard]] constexpr bool is_parsing(StartState state) {
  return state >= StartState::SendRequest && state <= StartState::AwaitRequest;
}
/// FPDUs are received.
[[nodiscard]] constexpr bool is_full_operation(StartState state) {
  return state >= StartState::Delayed && state <= StartState::Done;
}
/// FPDUs are sent.
[[nodiscard]] constexpr bool is_sending(StartState state) {
  return state == StartState::Unheard || state == StartState::Done;
}

}  // namespace rnic::mpa

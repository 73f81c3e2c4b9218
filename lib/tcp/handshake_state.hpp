/// \file
/// The state of our SYN or SYN-ACK, and the legal transitions.
#pragma once

#include <cstdint>

#include "base/transitions.hpp"

namespace rnic::tcp {

/// The state tells whether our SYN or SYN-ACK waits for its turn to be sent, and whether its answer
/// measures the round trip, which it does only if it was sent once (Karn's rule, RFC 6298 s.3). The
/// states in which it waits come last.
enum class HandshakeState : uint8_t {
  Idle,          ///< no SYN has been asked for
  Sent,          ///< once
  Assumed,       ///< our SYN-ACK was a SYN cookie: it was sent, at an unknown time
  Ambiguous,     ///< it was sent more than once
  Refused,       ///< a RST came, and it will be sent again after a pause (Config::refused_time)
  Done,          ///< both sequence numbers are known
  Due,           ///< for the first time
  DueAgain,      ///< it was sent once, and the peer's SYN came again, or crossed it
  DueAmbiguous,  ///< its timer has fired, or it was sent more than once
};

/// A SYN or SYN-ACK is answered, or times out, only after it was sent.
inline constexpr base::Transitions<HandshakeState, HandshakeState::DueAmbiguous>
    kHandshakeTransitions{
        {HandshakeState::Idle, {HandshakeState::Due, HandshakeState::Assumed}},
        {HandshakeState::Sent,
         {HandshakeState::DueAgain, HandshakeState::DueAmbiguous, HandshakeState::Refused,
          HandshakeState::Done}},
        {HandshakeState::Assumed, {HandshakeState::DueAmbiguous, HandshakeState::Done}},
        {HandshakeState::Ambiguous,
         {HandshakeState::DueAmbiguous, HandshakeState::Refused, HandshakeState::Done}},
        {HandshakeState::Refused, {HandshakeState::DueAmbiguous, HandshakeState::Done}},
        {HandshakeState::Due, {HandshakeState::Sent}},
        {HandshakeState::DueAgain,
         {HandshakeState::Ambiguous, HandshakeState::DueAmbiguous, HandshakeState::Done}},
        {HandshakeState::DueAmbiguous,
         {HandshakeState::Ambiguous, HandshakeState::Refused, HandshakeState::Done}},
    };

}  // namespace rnic::tcp

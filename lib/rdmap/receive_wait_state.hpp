/// \file
/// The states of a ReceiveWait and their legal transitions.
#pragma once

#include <cstdint>

#include "base/transitions.hpp"

namespace rnic::rdmap {

enum class ReceiveWaitState : uint8_t {
  Idle,    ///< no message waits
  Going,   ///< a message waits until the deadline
  CutOff,  ///< a message waits, but may do so no longer: the stream ends
  Barred,  ///< no message waits, and none may from now on
};

inline constexpr base::Transitions<ReceiveWaitState, ReceiveWaitState::Barred>
    kReceiveWaitTransitions{
        {ReceiveWaitState::Idle, {ReceiveWaitState::Going, ReceiveWaitState::Barred}},
        // Going again: the message behind the one that has its receive now waits.
        {ReceiveWaitState::Going,
         {ReceiveWaitState::Idle, ReceiveWaitState::Going, ReceiveWaitState::CutOff}},
        {ReceiveWaitState::CutOff, {ReceiveWaitState::Barred}},
    };

}  // namespace rnic::rdmap

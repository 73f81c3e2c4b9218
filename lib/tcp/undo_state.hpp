/// \file
/// Whether a reduction can be undone (RFC 4015 s.3.1), and the legal transitions.
#pragma once

#include <cstdint>

#include "base/transitions.hpp"

namespace rnic::tcp {

enum class UndoState : uint8_t {
  Nothing,    ///< no state from before a reduction is saved
  AwaitEcho,  ///< it is saved, and the first new ACK's timestamp may judge (RFC 3522 s.3.2 step 4)
  Saved,      ///< it is saved; D-SACKs may judge, or F-RTO
};

/// What is saved stays beyond its recovery, for D-SACKs that come late, until the next one begins.
inline constexpr base::Transitions<UndoState, UndoState::Saved> kUndoTransitions{
    {UndoState::Nothing, {UndoState::AwaitEcho, UndoState::Saved}},
    {UndoState::AwaitEcho, {UndoState::Saved, UndoState::Nothing}},
    {UndoState::Saved, {UndoState::AwaitEcho, UndoState::Saved, UndoState::Nothing}},
};

}  // namespace rnic::tcp

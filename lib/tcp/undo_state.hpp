/// \file
/// The states of a saved reduction that may be undone (RFC 4015 s.3.1), and the legal transitions.
#pragma once

#include <cstdint>

#include "base/transitions.hpp"

namespace rnic::tcp {

enum class UndoState : uint8_t {
  Nothing,    ///< no state from before a reduction is saved
  AwaitEcho,  ///< state is saved, and the timestamp of the first new ACK may judge (RFC 3522 s.3.2
              ///< step 4)
  Saved,      ///< state is saved, and D-SACKs or F-RTO may judge
};

/// The saved state outlives its recovery, for D-SACKs that come late, until the next recovery
/// begins.
inline constexpr base::Transitions<UndoState, UndoState::Saved> kUndoTransitions{
    {UndoState::Nothing, {UndoState::AwaitEcho, UndoState::Saved}},
    {UndoState::AwaitEcho, {UndoState::Saved, UndoState::Nothing}},
    {UndoState::Saved, {UndoState::AwaitEcho, UndoState::Saved, UndoState::Nothing}},
};

}  // namespace rnic::tcp

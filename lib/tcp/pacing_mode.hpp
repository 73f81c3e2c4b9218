/// \file
/// The modes of Pacing, and the legal transitions.
#pragma once

#include <cstdint>

#include "base/transitions.hpp"

namespace rnic::tcp {

enum class PacingMode : uint8_t {
  Free,   ///< segments leave at once
  Held,   ///< nothing leaves before one given moment
  Paced,  ///< each segment leaves at its own moment
};

/// A hold ends when its moment has come. A connection whose pacing is turned off is held until its
/// next segment may leave.
inline constexpr base::Transitions<PacingMode, PacingMode::Paced> kPacingTransitions{
    {PacingMode::Free, {PacingMode::Held, PacingMode::Paced}},
    {PacingMode::Held, {PacingMode::Free, PacingMode::Paced}},
    {PacingMode::Paced, {PacingMode::Held}},
};

}  // namespace rnic::tcp

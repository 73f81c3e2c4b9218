/// \file
/// Why segments of a connection ask before they leave, and the legal transitions.
#pragma once

#include <cstdint>

#include "base/transitions.hpp"

namespace rnic::tcp {

enum class PacingMode : uint8_t {
  Free,   ///< they do not
  Held,   ///< nothing leaves before a moment, once
  Paced,  ///< each leaves at its moment
};

/// A hold ends with its moment. A connection that is not paced any more is held until its next
/// segment may leave.
inline constexpr base::Transitions<PacingMode, PacingMode::Paced> kPacingTransitions{
    {PacingMode::Free, {PacingMode::Held, PacingMode::Paced}},
    {PacingMode::Held, {PacingMode::Free, PacingMode::Paced}},
    {PacingMode::Paced, {PacingMode::Held}},
};

}  // namespace rnic::tcp

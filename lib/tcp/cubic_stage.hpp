/// \file
/// The stages of CUBIC's congestion avoidance (RFC 9438 s.4.2) and their legal transitions.
#pragma once

#include <cstdint>

#include "base/transitions.hpp"

namespace rnic::tcp {

enum class CubicStage : uint8_t {
  None,     ///< the next ACK in congestion avoidance begins one
  Running,  ///< t passes
  Paused,   ///< t stands still: cwnd is not what limits the sender
};

/// A congestion event or a time-out ends a stage, whether it runs or not.
inline constexpr base::Transitions<CubicStage, CubicStage::Paused> kCubicTransitions{
    {CubicStage::None, {CubicStage::Running}},
    {CubicStage::Running, {CubicStage::None, CubicStage::Paused}},
    {CubicStage::Paused, {CubicStage::None, CubicStage::Running}},
};

}  // namespace rnic::tcp

/// \file
/// The steps of F-RTO (RFC 5682 s.3.1) and their legal transitions.
#pragma once

#include <cstdint>

#include "base/transitions.hpp"

namespace rnic::tcp {

enum class FrtoStep : uint8_t {
  Off,
  AwaitFirst,   ///< step 2: the ACK of the retransmitted segment
  SendNew,      ///< step 2b: up to two segments of new data go out, and nothing else
  AwaitSecond,  ///< step 3: the new data is out, and the next ACK decides
};

/// F-RTO begins with a time-out. Each step may end it, because there is a verdict, the ACK proves
/// nothing or there is no new data. The second ACK may come before the new data is out.
inline constexpr base::Transitions<FrtoStep, FrtoStep::AwaitSecond> kFrtoTransitions{
    {FrtoStep::Off, {FrtoStep::AwaitFirst}},
    {FrtoStep::AwaitFirst, {FrtoStep::SendNew, FrtoStep::Off}},
    {FrtoStep::SendNew, {FrtoStep::AwaitSecond, FrtoStep::Off}},
    {FrtoStep::AwaitSecond, {FrtoStep::Off}},
};

}  // namespace rnic::tcp

/// \file
/// The states of a tail loss probe (RFC 8985 s.7.3, s.7.4) and their legal transitions.
#pragma once

#include <cstdint>

#include "base/transitions.hpp"

namespace rnic::tcp {

enum class ProbeState : uint8_t {
  None,      ///< none is outstanding
  Plain,     ///< TLP.end_seq is valid; new data, or in a recovery, which has reduced cwnd already
  Repeated,  ///< TLP.end_seq is valid, and TLP.is_retrans: it may repair a loss that nobody noticed
};

/// In a recovery a lost probe is followed by another one, which may go out when that is over.
inline constexpr base::Transitions<ProbeState, ProbeState::Repeated> kProbeTransitions{
    {ProbeState::None, {ProbeState::Plain, ProbeState::Repeated}},
    {ProbeState::Plain, {ProbeState::None, ProbeState::Plain, ProbeState::Repeated}},
    {ProbeState::Repeated, {ProbeState::None}},
};

}  // namespace rnic::tcp

/// \file
/// The state of the tail loss probe that is outstanding (RFC 8985 s.7.3, s.7.4), and whether the
/// next one may be sent (s.7.2), with the legal transitions.
#pragma once

#include <cstdint>

#include "base/transitions.hpp"

namespace rnic::tcp {

enum class ProbeState : uint8_t {
  None,      ///< no probe is outstanding
  Plain,     ///< TLP.end_seq is valid; the probe was new data, or was sent in a recovery, which has
             ///< reduced cwnd already
  Repeated,  ///< TLP.end_seq is valid, and TLP.is_retrans is set: the probe may repair an
             ///< undetected loss
};

/// In a recovery a lost probe is followed by another one, which may go out when the recovery is
/// over.
inline constexpr base::Transitions<ProbeState, ProbeState::Repeated> kProbeTransitions{
    {ProbeState::None, {ProbeState::Plain, ProbeState::Repeated}},
    {ProbeState::Plain, {ProbeState::None, ProbeState::Plain, ProbeState::Repeated}},
    {ProbeState::Repeated, {ProbeState::None}},
};

enum class ProbeTurn : uint8_t {
  Open,        ///< the timer may be armed for a probe
  Unmeasured,  ///< a probe was sent, and no round trip was measured since: the sender waits for the
               ///< RTO
  Due,         ///< the timer has fired: a probe waits for its turn
  DueAgain,    ///< a probe is due in a recovery, although no round trip was measured since the last
               ///< one
};

/// A measured round trip allows the next probe. A probe that is due is sent, or is not needed any
/// more.
inline constexpr base::Transitions<ProbeTurn, ProbeTurn::DueAgain> kProbeTurnTransitions{
    {ProbeTurn::Open, {ProbeTurn::Due}},
    {ProbeTurn::Unmeasured, {ProbeTurn::Open, ProbeTurn::DueAgain}},
    {ProbeTurn::Due, {ProbeTurn::Open, ProbeTurn::Unmeasured}},
    {ProbeTurn::DueAgain, {ProbeTurn::Unmeasured, ProbeTurn::Due}},
};

}  // namespace rnic::tcp

/// \file
/// What a tail loss probe that is out may mean (RFC 8985 s.7.3, s.7.4), and whose turn the next one
/// is (s.7.2), with their legal transitions.
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

enum class ProbeTurn : uint8_t {
  Open,        ///< the timer may be armed for one
  Unmeasured,  ///< one was sent, and no round trip was measured since: the RTO is waited for
  Due,         ///< the timer has fired: a probe waits for its turn
  DueAgain,    ///< as Due, in a recovery, which does not wait for a measurement as Unmeasured does
};

/// A round trip that is measured allows the next one. A probe that is due is sent, or is not needed
/// any more.
inline constexpr base::Transitions<ProbeTurn, ProbeTurn::DueAgain> kProbeTurnTransitions{
    {ProbeTurn::Open, {ProbeTurn::Due}},
    {ProbeTurn::Unmeasured, {ProbeTurn::Open, ProbeTurn::DueAgain}},
    {ProbeTurn::Due, {ProbeTurn::Open, ProbeTurn::Unmeasured}},
    {ProbeTurn::DueAgain, {ProbeTurn::Unmeasured, ProbeTurn::Due}},
};

}  // namespace rnic::tcp

/// \file
/// The phases of loss recovery and their legal transitions.
#pragma once

#include <cstdint>

#include "base/transitions.hpp"

namespace rnic::tcp {

enum class RecoveryPhase : uint8_t {
  Open,
  Recovery,  ///< fast recovery, of a loss that ACKs have shown
  TimedOut,  ///< a retransmission time-out, and no new ACK since: only the earliest segment is sent
  Loss,      ///< after a time-out, once a new ACK has come
};

/// A loss that ACKs show within a recovery begins no further recovery. A time-out may come in each
/// phase, and each recovery may turn out to be spurious.
inline constexpr base::Transitions<RecoveryPhase, RecoveryPhase::Loss> kRecoveryTransitions{
    {RecoveryPhase::Open, {RecoveryPhase::Recovery, RecoveryPhase::TimedOut}},
    {RecoveryPhase::Recovery, {RecoveryPhase::Open, RecoveryPhase::TimedOut}},
    {RecoveryPhase::TimedOut, {RecoveryPhase::TimedOut, RecoveryPhase::Loss, RecoveryPhase::Open}},
    {RecoveryPhase::Loss, {RecoveryPhase::Open, RecoveryPhase::TimedOut}},
};

/// A time-out began the recovery.
[[nodiscard]] constexpr bool follows_timeout(RecoveryPhase phase) {
  return phase == RecoveryPhase::TimedOut || phase == RecoveryPhase::Loss;
}

}  // namespace rnic::tcp

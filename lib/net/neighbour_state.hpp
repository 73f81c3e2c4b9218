/// \file
/// The states of a neighbour's entry (RFC 4861 s.7.3.2, used for ARP, too) and their legal
/// transitions.
#pragma once

#include <cstdint>

#include "base/transitions.hpp"

namespace rnic::net {

enum class NeighbourState : uint8_t {
  Free,
  Incomplete,  ///< the address is not known yet and is asked for
  Reachable,
  Stale,    ///< not used for long: the address may be used, and is then confirmed
  Probing,  ///< the address is in use, but is being confirmed
};

/// Each entry may be given up, because nobody answers or another neighbour takes its place.
inline constexpr base::Transitions<NeighbourState, NeighbourState::Probing> kNeighbourTransitions{
    {NeighbourState::Free, {NeighbourState::Incomplete}},
    {NeighbourState::Incomplete, {NeighbourState::Reachable, NeighbourState::Free}},
    // A neighbour that asks for our address is confirmed once more.
    {NeighbourState::Reachable,
     {NeighbourState::Reachable, NeighbourState::Stale, NeighbourState::Probing,
      NeighbourState::Free}},
    {NeighbourState::Stale,
     {NeighbourState::Reachable, NeighbourState::Probing, NeighbourState::Free}},
    {NeighbourState::Probing, {NeighbourState::Reachable, NeighbourState::Free}},
};

}  // namespace rnic::net

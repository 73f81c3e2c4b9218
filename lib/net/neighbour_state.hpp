/// \file
/// The states of a neighbour's entry (RFC 4861 s.7.3.2, for ARP as well) and their legal
/// transitions.
#pragma once

#include <cstdint>

#include "base/transitions.hpp"

namespace rnic::net {

enum class NeighbourState : uint8_t {
  Free,
  Incomplete,  ///< no address yet; asking
  Reachable,
  Stale,    ///< not used for long: good for what comes first, and then to be confirmed
  Probing,  ///< address in use, but to be confirmed; asking
};

/// Each entry may be given up: nobody answers, or another neighbour takes its place.
inline constexpr base::Transitions<NeighbourState, NeighbourState::Probing> kNeighbourTransitions{
    {NeighbourState::Free, {NeighbourState::Incomplete}},
    {NeighbourState::Incomplete, {NeighbourState::Reachable, NeighbourState::Free}},
    // A neighbour that asks for us confirms itself once more.
    {NeighbourState::Reachable,
     {NeighbourState::Reachable, NeighbourState::Stale, NeighbourState::Probing,
      NeighbourState::Free}},
    {NeighbourState::Stale,
     {NeighbourState::Reachable, NeighbourState::Probing, NeighbourState::Free}},
    {NeighbourState::Probing, {NeighbourState::Reachable, NeighbourState::Free}},
};

}  // namespace rnic::net

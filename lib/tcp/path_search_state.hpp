/// \file
/// The states of a search for the MTU of a path (RFC 8899 s.5.2, RFC 4821 s.7), and the legal
/// transitions.
#pragma once

#include <cstdint>

#include "base/transitions.hpp"

namespace rnic::tcp {

/// RFC 8899 also has BASE, in which probes confirm the base size, and ERROR, in which it does not
/// pass. Here a search takes it for granted, and a time-out finds a path that does not carry it
/// (RFC 4821 s.7.7).
enum class PathSearchState : uint8_t {
  Disabled,        ///< the MTU that routers tell of applies, and no probe is sent
  Searching,       ///< the next probe waits for its time and for enough data
  Probing,         ///< a probe is in flight, which RFC 8899 counts to SEARCHING
  SearchComplete,  ///< no larger size passes, as far as is known, until PMTU_RAISE_TIMER is over
};

/// A black hole begins a search unless one is under way, whose sizes it lowers. The timer is looked
/// at when segments leave: a probe follows SearchComplete at once, or the timer starts anew, since
/// no larger size is worth one. The search is disabled when a probe of the size that routers tell
/// of has arrived.
inline constexpr base::Transitions<PathSearchState, PathSearchState::SearchComplete>
    kPathSearchTransitions{
        {PathSearchState::Disabled, {PathSearchState::Searching}},
        {PathSearchState::Searching, {PathSearchState::Probing, PathSearchState::SearchComplete}},
        {PathSearchState::Probing, {PathSearchState::Disabled, PathSearchState::Searching}},
        {PathSearchState::SearchComplete,
         {PathSearchState::Searching, PathSearchState::Probing, PathSearchState::SearchComplete}},
    };

}  // namespace rnic::tcp

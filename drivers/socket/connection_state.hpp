/// \file
/// The states of a connection over a socket of the system and of its sending half, with their legal
/// transitions.
#pragma once

#include <cstdint>

#include "base/transitions.hpp"

namespace rnic::socket {

enum class ConnectionState : uint8_t {
  Connecting,
  Open,
  Ended,  ///< nothing is called up any more but ended(), by the transport
};

/// An accepted connection begins in Open.
inline constexpr base::Transitions<ConnectionState, ConnectionState::Ended> kConnectionTransitions{
    {ConnectionState::Connecting, {ConnectionState::Open, ConnectionState::Ended}},
    {ConnectionState::Open, {ConnectionState::Ended}},
};

/// Of our half of the stream.
enum class OurHalf : uint8_t {
  Open,
  Closing,  ///< the user has closed: FIN follows what it has
  Closed,   ///< FIN was given to the system
};

inline constexpr base::Transitions<OurHalf, OurHalf::Closed> kOurHalfTransitions{
    {OurHalf::Open, {OurHalf::Closing}},
    {OurHalf::Closing, {OurHalf::Closed}},
};

}  // namespace rnic::socket

/// \file
/// The states of a connection over a socket of the system and of its two halves, with their legal
/// transitions.
#pragma once

#include <cstdint>

#include "base/transitions.hpp"
#include "rnic/transport.hpp"

namespace rnic::socket {

/// An accepted connection begins in Open. Once it has Ended, only ended() is still called up, by
/// the transport.
inline constexpr base::Transitions<StreamState, StreamState::Ended> kConnectionTransitions{
    {StreamState::Connecting, {StreamState::Open, StreamState::Ended}},
    {StreamState::Open, {StreamState::Ended}},
};

/// The states of our half of the stream.
enum class OurHalf : uint8_t {
  Open,
  Closing,  ///< the user has closed: FIN follows the octets that it still has
  Closed,   ///< FIN was given to the system
};

inline constexpr base::Transitions<OurHalf, OurHalf::Closed> kOurHalfTransitions{
    {OurHalf::Open, {OurHalf::Closing}},
    {OurHalf::Closing, {OurHalf::Closed}},
};

/// The states of the peer's half of the stream.
enum class PeersHalf : uint8_t {
  Open,
  Leaving,   ///< the system has the peer's FIN, or an error that ends the stream; octets that came
             ///< before may still be unread
  Finished,  ///< all octets were read, and the FIN behind them
};

inline constexpr base::Transitions<PeersHalf, PeersHalf::Finished> kPeersHalfTransitions{
    // A read may come upon the FIN before an event tells of it.
    {PeersHalf::Open, {PeersHalf::Leaving, PeersHalf::Finished}},
    {PeersHalf::Leaving, {PeersHalf::Finished}},
};

}  // namespace rnic::socket

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

/// The states of the half of the stream that we write.
enum class WriteHalf : uint8_t {
  Open,
  Closing,  ///< the user has closed: FIN follows the octets that it still has
  Closed,   ///< FIN was given to the system
};

inline constexpr base::Transitions<WriteHalf, WriteHalf::Closed> kWriteHalfTransitions{
    {WriteHalf::Open, {WriteHalf::Closing}},
    {WriteHalf::Closing, {WriteHalf::Closed}},
};

/// The states of the half of the stream that we read, as the system has it. What the application
/// sees of that half is llp::PeerHalf.
enum class ReadHalf : uint8_t {
  Open,
  Leaving,   ///< the system has the peer's FIN, or an error that ends the stream; octets that came
             ///< before may still be unread
  Finished,  ///< all octets were read, and the FIN behind them
};

inline constexpr base::Transitions<ReadHalf, ReadHalf::Finished> kReadHalfTransitions{
    // A read may come upon the FIN before an event tells of it.
    {ReadHalf::Open, {ReadHalf::Leaving, ReadHalf::Finished}},
    {ReadHalf::Leaving, {ReadHalf::Finished}},
};

}  // namespace rnic::socket

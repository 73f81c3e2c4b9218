/// \file
/// The states of the peer's FIN, and the legal transitions.
#pragma once

#include <cstdint>

#include "base/transitions.hpp"

namespace rnic::tcp {

enum class PeersFin : uint8_t {
  None,     ///< no FIN that counts was received
  Seen,     ///< it was received, in order or not: nothing behind it is taken
  Reached,  ///< RCV.NXT has come to it: the ACK field covers it
};

/// RFC 9293 s.3.10.7.4: a FIN is processed (eighth) only when all octets before it were (seventh).
inline constexpr base::Transitions<PeersFin, PeersFin::Reached> kPeersFinTransitions{
    {PeersFin::None, {PeersFin::Seen}},
    {PeersFin::Seen, {PeersFin::Reached}},
};

}  // namespace rnic::tcp

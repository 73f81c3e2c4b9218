/// \file
/// The system's facts about a connection of its own, and about a socket that listens.
#pragma once

#include "rnic/device_info.hpp"
#include "socket/calls.hpp"

namespace rnic::socket {

/// TCP_INFO of a connected socket; zeros if the system refuses. It does not tell the peer's window.
[[nodiscard]] TransportInfo ask_info(System& system, int descriptor);

/// \return whether a peer waits to be taken from a socket that listens; true if the system refuses
[[nodiscard]] bool has_waiting_peer(System& system, int descriptor);

}  // namespace rnic::socket

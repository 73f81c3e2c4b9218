/// \file
/// The system's facts about a connection of its own.
#pragma once

#include "rnic/device_info.hpp"
#include "socket/calls.hpp"

namespace rnic::socket {

/// TCP_INFO of a connected socket; zeros if the system refuses. It does not tell the peer's window.
[[nodiscard]] TransportInfo ask_info(System& system, int descriptor);

}  // namespace rnic::socket

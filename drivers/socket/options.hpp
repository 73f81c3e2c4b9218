/// \file
/// Options of TCP for one socket of the system.
#pragma once

#include "base/fail.hpp"
#include "rnic/tcp_options.hpp"
#include "socket/calls.hpp"
#include "socket/config.hpp"

namespace rnic::socket {

/// What the configuration says of every connection.
[[nodiscard]] TcpOptions options_of(const Config& config);

/// Has the system's TCP do what `options` sets; what is not set stays. The values are in their
/// ranges, and none is the system's own affair (congestion control, ECN, pacing). The times of
/// keep-alive are whole seconds, rounded up. max_segment has an effect before the handshake alone.
/// \return Unsupported names the first option that the system has not taken; the others are set
Status apply(System& system, int descriptor, const TcpOptions& options);

}  // namespace rnic::socket

/// \file
/// Checks of a received IPv4 packet (RFC 1122 s.3.2.1).
#pragma once

#include <optional>

#include "net/counters.hpp"
#include "net/net.hpp"
#include "net/route.hpp"
#include "port/port.hpp"

namespace rnic::net {

/// \param frame an Ethernet frame with an IPv4 type, at least an Ethernet header long.
/// \param trusted checksums left open count as good: the medium is memory.
/// \return the packet when it is for us and unharmed; otherwise a counter has the reason.
[[nodiscard]] std::optional<Ipv4In> ipv4_input(const port::Packet& frame, const Route& route,
                                               bool trusted, Counters& counters);

}  // namespace rnic::net

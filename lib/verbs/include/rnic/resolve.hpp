/// \file
/// Host names: from a text to the ends that a connection can have.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "rnic/address.hpp"
#include "rnic/error.hpp"

namespace rnic {

/// Asks the system (getaddrinfo(3): /etc/hosts, DNS) for the addresses of `host`, which may be an
/// address itself. In the system's order (RFC 6724), each once; never empty. Any thread; it waits
/// for the network, as long as resolv.conf(5) says, and drives no device: ask before, or in a
/// thread of its own. An IPv6 address with a zone ("fe80::1%eth0") loses the zone.
/// \param host a name or an address; not empty
/// \param port of each of them
/// InvalidArgument: it is no name at all. NotFound: nobody has that name, or it has no address.
/// TimedOut: no name server answers now. ResourceExhausted: no memory. Environment: the rest.
[[nodiscard]] Result<std::vector<Endpoint>> resolve(const std::string& host, uint16_t port);

}  // namespace rnic

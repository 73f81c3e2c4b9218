/// \file
/// Host names: resolve() finds the endpoints that a connection to a host can have.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "rnic/address.hpp"
#include "rnic/error.hpp"

namespace rnic {

/// Asks the system (getaddrinfo(3): /etc/hosts, DNS) for the addresses of `host`, which may be an
/// address itself. Any thread may call it. It waits for the network as long as resolv.conf(5) says,
/// and drives no device meanwhile: call it beforehand, or in a thread of its own. An IPv6 address
/// with a zone ("fe80::1%eth0") loses the zone.
/// \param host a name or an address; not empty
/// \param port the port of each endpoint
/// \return the endpoints in the system's order (RFC 6724), each once; never empty.
/// InvalidArgument: `host` is no name at all, or has more than 254 characters. NotFound: nobody has
/// that name, or it has no address. TimedOut: no name server answers now. ResourceExhausted: no
/// memory. Environment: all other errors.
[[nodiscard]] Result<std::vector<Endpoint>> resolve(const std::string& host, uint16_t port);

}  // namespace rnic

/// \file
/// Where the device reaches from where: what is known of a way before there is a connect.
#pragma once

#include <sys/socket.h>

#include <optional>

#include "rnic/verbs.hpp"

namespace rnic::run {

/// An address of one link names a machine together with an interface (its scope), and an Endpoint
/// has none: no connect could succeed. A device with frames of its own has one link.
/// \return false: it may be used. True: one line has told the program's user
[[nodiscard]] bool lacks_its_link(const IpAddress& address, const char* call);

/// A device with frames of its own does not send any to itself, as which every address of the
/// loopback counts. \return as lacks_its_link()
[[nodiscard]] bool is_out_of_reach(const IpAddress& address);

/// This side's address towards `target`. A device with frames of its own has its own addresses.
/// \return nothing: there is none, and errno says why
[[nodiscard]] std::optional<IpAddress> source_towards(const sockaddr_storage& target);

/// This machine itself, as which the kernel takes every destination that is no address (0.0.0.0,
/// ::). \return nothing: the device has no address of the family
[[nodiscard]] std::optional<sockaddr_storage> itself(const sockaddr_storage& none,
                                                     const Endpoint& local);

}  // namespace rnic::run

/// \file
/// Addresses as programs give and get them: sockaddr_storage, with a port.
#pragma once

#include <sys/socket.h>

#include <algorithm>
#include <cstddef>
#include <cstring>
#include <optional>

#include "rnic/verbs.hpp"

namespace rnic::run {

/// \return nothing: it is of another family than those of IP
[[nodiscard]] std::optional<Endpoint> endpoint_of(const sockaddr_storage& address);
[[nodiscard]] sockaddr_storage stored(const Endpoint& endpoint, bool v6);

/// An address of one family, of which `size` octets are there.
template <typename Address>
[[nodiscard]] sockaddr_storage widened(const Address& address, size_t size) {
  sockaddr_storage out{};
  std::memcpy(&out, &address, std::min(size, sizeof(out)));
  return out;
}

/// All addresses of the family, where the address is one by which a machine reaches itself; nothing
/// for every other address.
[[nodiscard]] std::optional<sockaddr_storage> all_for_loopback(const sockaddr_storage& address);

}  // namespace rnic::run

/// \file
/// Addresses of a connection's ends.
#pragma once

#include <compare>
#include <cstdint>
#include <string>

#include "base/result.hpp"

namespace rnic::llp {

/// IPv4 address in host order. (IPv6 widens this type.)
struct IpAddress {
  uint32_t value = 0;
  friend constexpr auto operator<=>(const IpAddress&, const IpAddress&) = default;
};

struct Endpoint {
  IpAddress address;
  uint16_t port = 0;
  friend constexpr auto operator<=>(const Endpoint&, const Endpoint&) = default;
};

[[nodiscard]] std::string to_string(IpAddress address);
[[nodiscard]] std::string to_string(const Endpoint& endpoint);
/// "10.0.0.1". Anything else is an error that says so.
[[nodiscard]] base::Result<IpAddress> parse_ip(const std::string& text);

}  // namespace rnic::llp

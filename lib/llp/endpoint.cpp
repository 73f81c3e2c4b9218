#include "llp/endpoint.hpp"

#include <arpa/inet.h>

namespace rnic::llp {

std::string to_string(IpAddress address) {
  const uint32_t v = address.value;
  return std::to_string(v >> 24) + "." + std::to_string((v >> 16) & 255) + "." +
         std::to_string((v >> 8) & 255) + "." + std::to_string(v & 255);
}

std::string to_string(const Endpoint& endpoint) {
  return to_string(endpoint.address) + ":" + std::to_string(endpoint.port);
}

base::Result<IpAddress> parse_ip(const std::string& text) {
  in_addr parsed{};
  if (inet_pton(AF_INET, text.c_str(), &parsed) != 1) {
    return base::fail(
        base::Errc::InvalidArgument,
        "\"" + text + "\" is not an IPv4 address: write four numbers, as in 10.0.0.1");
  }
  return IpAddress{ntohl(parsed.s_addr)};
}

}  // namespace rnic::llp

#include "rnic/address.hpp"

#include <arpa/inet.h>

#include <array>

namespace rnic {

namespace {

uint64_t load(const uint8_t* octets) {
  uint64_t value = 0;
  for (int i = 0; i < 8; ++i) value = value << 8 | octets[i];
  return value;
}

void store(uint8_t* octets, uint64_t value) {
  for (int i = 7; i >= 0; --i, value >>= 8) octets[i] = static_cast<uint8_t>(value);
}

}  // namespace

std::string to_string(const IpAddress& address) {
  std::array<char, INET6_ADDRSTRLEN> text{};
  if (address.is_v4()) {
    const in_addr raw{htonl(address.as_v4())};
    inet_ntop(AF_INET, &raw, text.data(), text.size());
  } else {
    in6_addr raw{};
    store(raw.s6_addr, address.high());
    store(raw.s6_addr + 8, address.low());
    inet_ntop(AF_INET6, &raw, text.data(), text.size());
  }
  return text.data();
}

std::string to_string(const Endpoint& endpoint) {
  const std::string address = to_string(endpoint.address);
  return (endpoint.address.is_v4() ? address : "[" + address + "]") + ":" +
         std::to_string(endpoint.port);
}

Result<IpAddress> parse_ip(const std::string& text) {
  in_addr v4{};
  if (inet_pton(AF_INET, text.c_str(), &v4) == 1) return IpAddress::v4(ntohl(v4.s_addr));
  in6_addr v6{};
  if (inet_pton(AF_INET6, text.c_str(), &v6) == 1) {
    return IpAddress(load(v6.s6_addr), load(v6.s6_addr + 8));
  }
  return tl::unexpected(Error{ErrorCode::InvalidArgument,
                              "\"" + text + "\" is not an IP address: write 10.0.0.1 or fd00::1"});
}

Result<Endpoint> parse_endpoint(const std::string& address, uint16_t port) {
  if (address.empty()) return Endpoint{{}, port};
  const auto ip = parse_ip(address);
  if (!ip) return tl::unexpected(ip.error());
  return Endpoint{*ip, port};
}

}  // namespace rnic

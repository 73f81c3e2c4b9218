#include "rnic-run/stored_address.hpp"

#include <arpa/inet.h>
#include <endian.h>
#include <netinet/in.h>

namespace rnic::run {

namespace {

IpAddress address_of(const in6_addr& address) {
  uint64_t halves[2];
  std::memcpy(halves, &address, sizeof(halves));
  return {be64toh(halves[0]), be64toh(halves[1])};
}

}  // namespace

std::optional<Endpoint> endpoint_of(const sockaddr_storage& address) {
  if (address.ss_family == AF_INET) {
    sockaddr_in in;
    std::memcpy(&in, &address, sizeof(in));
    return Endpoint{IpAddress::v4(ntohl(in.sin_addr.s_addr)), ntohs(in.sin_port)};
  }
  if (address.ss_family == AF_INET6) {
    sockaddr_in6 in;
    std::memcpy(&in, &address, sizeof(in));
    return Endpoint{address_of(in.sin6_addr), ntohs(in.sin6_port)};
  }
  return std::nullopt;
}

sockaddr_storage stored(const Endpoint& endpoint, bool v6) {
  sockaddr_storage out{};
  if (!v6) {
    sockaddr_in in{};
    in.sin_family = AF_INET;
    in.sin_port = htons(endpoint.port);
    in.sin_addr.s_addr =
        endpoint.address.is_v4() ? htonl(endpoint.address.as_v4()) : htonl(INADDR_ANY);
    std::memcpy(&out, &in, sizeof(in));
    return out;
  }
  sockaddr_in6 in{};
  in.sin6_family = AF_INET6;
  in.sin6_port = htons(endpoint.port);
  const uint64_t halves[2] = {htobe64(endpoint.address.high()), htobe64(endpoint.address.low())};
  std::memcpy(&in.sin6_addr, halves, sizeof(halves));
  std::memcpy(&out, &in, sizeof(in));
  return out;
}

std::optional<sockaddr_storage> all_for_loopback(const sockaddr_storage& address) {
  sockaddr_storage all = address;
  if (address.ss_family == AF_INET) {
    auto& v4 = reinterpret_cast<sockaddr_in&>(all);
    if (ntohl(v4.sin_addr.s_addr) >> 24 != IN_LOOPBACKNET) return std::nullopt;
    v4.sin_addr.s_addr = INADDR_ANY;
  } else {
    auto& v6 = reinterpret_cast<sockaddr_in6&>(all);
    if (!IN6_IS_ADDR_LOOPBACK(&v6.sin6_addr)) return std::nullopt;
    v6.sin6_addr = in6addr_any;
  }
  return all;
}

}  // namespace rnic::run

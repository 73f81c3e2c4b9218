#include "rnic-run/reach.hpp"

#include <netinet/in.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <string>

#include "rnic-run/adapter.hpp"
#include "rnic-run/stored_address.hpp"

namespace rnic::run {

namespace {

/// This side's address towards `target`, as the system's routes have it: for a device on sockets.
std::optional<IpAddress> routed_source(const sockaddr_storage& target) {
  const int probe = socket(target.ss_family, SOCK_DGRAM | SOCK_CLOEXEC, 0);
  if (probe < 0) return std::nullopt;
  sockaddr_storage source{};
  socklen_t size = sizeof(source);
  const socklen_t length = target.ss_family == AF_INET ? sizeof(sockaddr_in) : sizeof(sockaddr_in6);
  const bool found = ::connect(probe, reinterpret_cast<const sockaddr*>(&target), length) == 0 &&
                     getsockname(probe, reinterpret_cast<sockaddr*>(&source), &size) == 0;
  const int why = errno;
  close(probe);
  errno = why;
  const auto endpoint = endpoint_of(source);
  if (!found || !endpoint) return std::nullopt;
  return endpoint->address;
}

}  // namespace

bool lacks_its_link(const IpAddress& address, const char* call) {
  const auto is_of_link = [](const IpAddress& each) { return each.is_link_local(); };
  if (!is_of_link(address)) return false;
  const auto own = Adapter::get()->device().addresses();
  if (std::any_of(own.begin(), own.end(), is_of_link)) return false;
  complain(std::string(call) + ": " + to_string(address) +
           " is an address of one link (link-local), of which the device has none: give another "
           "address of that machine");
  return true;
}

std::optional<IpAddress> source_towards(const sockaddr_storage& target) {
  const auto own = Adapter::get()->device().addresses();
  if (own.empty()) return routed_source(target);
  const bool v4 = target.ss_family == AF_INET;
  const auto found = std::find_if(own.begin(), own.end(), [v4](const IpAddress& address) {
    return address.is_v4() == v4;
  });
  if (found != own.end()) return *found;
  errno = ENETUNREACH;
  return std::nullopt;
}

bool is_out_of_reach(const IpAddress& address) {
  const auto own = Adapter::get()->device().addresses();
  if (own.empty()) return false;
  const bool is_loopback =
      address.is_v4() ? address.as_v4() >> 24 == IN_LOOPBACKNET : address == IpAddress(0, 1);
  if (!is_loopback && std::find(own.begin(), own.end(), address) == own.end()) return false;
  complain("rdma_resolve_addr: " + to_string(address) +
           " is this device itself, which it does not reach by its frames: give the peer's "
           "address on the wire");
  return true;
}

std::optional<sockaddr_storage> itself(const sockaddr_storage& none, const Endpoint& local) {
  const bool v6 = none.ss_family == AF_INET6;
  Endpoint out = *endpoint_of(none);
  out.address = local.address;
  if (out.address.is_unspecified()) {
    const auto loopback = stored({v6 ? IpAddress(0, 1) : IpAddress::v4(INADDR_LOOPBACK), 0}, v6);
    const auto own = source_towards(loopback);
    if (!own) return std::nullopt;
    out.address = *own;
  }
  return stored(out, v6);
}

}  // namespace rnic::run

#include "socket/system.hpp"

#include <netinet/in.h>

#include <cerrno>
#include <system_error>

#include "base/endian.hpp"

namespace rnic::socket {

void Descriptor::reset() {
  if (number_ >= 0) system_->close(number_);
  number_ = -1;
}

SystemAddress::SystemAddress(const Endpoint& endpoint, bool mapped) {
  if (endpoint.address.is_v4() && !mapped) {
    auto& v4 = reinterpret_cast<sockaddr_in&>(storage);
    v4.sin_family = AF_INET;
    v4.sin_port = htons(endpoint.port);
    v4.sin_addr.s_addr = htonl(endpoint.address.as_v4());
    size = sizeof v4;
    return;
  }
  auto& v6 = reinterpret_cast<sockaddr_in6&>(storage);
  v6.sin6_family = AF_INET6;
  v6.sin6_port = htons(endpoint.port);
  base::store_be64(v6.sin6_addr.s6_addr, endpoint.address.high());
  base::store_be64(v6.sin6_addr.s6_addr + 8, endpoint.address.low());
  size = sizeof v6;
}

Endpoint SystemAddress::endpoint() const {
  if (family() == AF_INET) {
    const auto& v4 = reinterpret_cast<const sockaddr_in&>(storage);
    return {IpAddress::v4(ntohl(v4.sin_addr.s_addr)), ntohs(v4.sin_port)};
  }
  const auto& v6 = reinterpret_cast<const sockaddr_in6&>(storage);
  return {
      IpAddress(base::load_be64(v6.sin6_addr.s6_addr), base::load_be64(v6.sin6_addr.s6_addr + 8)),
      ntohs(v6.sin6_port)};
}

Result<Descriptor> open_socket(System& system, int family) {
  constexpr int kType = SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC;
  Descriptor descriptor(system.socket(family, kType, IPPROTO_TCP), system);
  if (!descriptor.open()) return tl::unexpected(system_error("a TCP socket", errno));
  return descriptor;
}

StreamEnd end_of(int error, bool connecting) {
  switch (error) {
    case ECONNREFUSED: return StreamEnd::Refused;
    case ETIMEDOUT: return StreamEnd::TimedOut;
    case ENETUNREACH:
    case EHOSTUNREACH:
    case ENETDOWN:
    case EHOSTDOWN:
    case EACCES:  // a filter on the way, or a prohibiting route
    case EPERM:
    case ENONET:
    case ENOPROTOOPT:
    case EPROTO: return StreamEnd::Unreachable;
    default: break;
  }
  return connecting && error == ECONNRESET ? StreamEnd::Refused : StreamEnd::PeerReset;
}

bool is_known(int error) {
  return error == ECONNRESET || error == EPIPE || error == ECONNABORTED ||
         end_of(error, false) != StreamEnd::PeerReset;
}

Error system_error(const std::string& what, int error) {
  ErrorCode code = ErrorCode::Environment;
  const char* remedy = "";
  switch (error) {
    case EADDRINUSE:
      code = ErrorCode::AlreadyExists;
      remedy = "; another program or device has it: choose another port";
      break;
    case EADDRNOTAVAIL:
      code = ErrorCode::InvalidArgument;
      remedy = "; this machine does not have the address: see \"ip address\"";
      break;
    case EACCES:
    case EPERM:
      code = ErrorCode::PermissionDenied;
      remedy = "; a filter forbids it, or the port is below 1024 and needs rights";
      break;
    case EMFILE:
    case ENFILE:
      code = ErrorCode::ResourceExhausted;
      remedy = "; raise the limit of open files (ulimit -n)";
      break;
    case ENETUNREACH:
    case EHOSTUNREACH: code = ErrorCode::Unreachable; break;
    case EAFNOSUPPORT:
      code = ErrorCode::Unsupported;
      remedy = "; this machine does not have this version of IP";
      break;
    case EINVAL: code = ErrorCode::InvalidArgument; break;
    default: break;
  }
  return {code, what + ": " + std::generic_category().message(error) + remedy};
}

Error connect_error(const Endpoint& local, const Endpoint& remote, int error) {
  // The machine has the address, because the socket is bound to it: the connection is in the way.
  if (error == EADDRNOTAVAIL && local.port != 0) {
    return {ErrorCode::AlreadyExists,
            "connect: " + to_string(local) + " to " + to_string(remote) +
                " exists, or is in TIME-WAIT: use another local port, or wait"};
  }
  return system_error("connect to " + to_string(remote), error);
}

bool set_option(System& system, int descriptor, int level, int name, int value) {
  return system.setsockopt(descriptor, level, name, &value, sizeof value) == 0;
}

void reset_on_close(System& system, int descriptor) {
  const linger at_once{1, 0};
  system.setsockopt(descriptor, SOL_SOCKET, SO_LINGER, &at_once, sizeof at_once);
}

}  // namespace rnic::socket

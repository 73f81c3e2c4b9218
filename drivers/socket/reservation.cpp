#include "socket/reservation.hpp"

#include <netinet/in.h>
#include <sys/socket.h>

#include <algorithm>
#include <cerrno>
#include <string>
#include <utility>

namespace rnic::socket {

namespace {

Error reserve_error(const Endpoint& local, int error) {
  return system_error("reserve " + to_string(local), error);
}

/// Binds a socket to a port that nobody else has, and that nobody else can get from then on.
/// \return 0, or the system's error
int bind_alone(System& system, int fd, const Endpoint& local) {
  const SystemAddress address(local);
  // Without SO_REUSEADDR the system refuses whatever else is bound there, now and later.
  if (system.bind(fd, address.get(), address.size) == 0) return 0;
  if (errno != EADDRINUSE || local.port == 0) return errno;
  // Connections that a former owner has left, in TIME-WAIT for example, are in the way without the
  // option only. But with it several sockets can be bound at once. Of these one can listen: whoever
  // does has the port, and clears the option before it stops, so that it never lets anybody in.
  const bool shares = set_option(system, fd, SOL_SOCKET, SO_REUSEADDR, 1);
  if (!shares || system.bind(fd, address.get(), address.size) != 0 || system.listen(fd, 1) != 0 ||
      !set_option(system, fd, SOL_SOCKET, SO_REUSEADDR, 0) || system.shutdown(fd, SHUT_RD) != 0) {
    return errno;
  }
  return 0;
}

/// A port that is free at `address` now.
Result<uint16_t> choose_port(System& system, const IpAddress& address) {
  Endpoint local{address, 0};
  auto socket = open_local_socket(system, local);
  if (!socket) return tl::unexpected(socket.error());
  SystemAddress bound;
  if (const int error = bind_alone(system, socket->get(), local); error != 0) {
    return tl::unexpected(reserve_error(local, error));
  }
  if (system.getsockname(socket->get(), bound.get(), &bound.size) != 0) {
    return tl::unexpected(reserve_error(local, errno));
  }
  return bound.endpoint().port;
}

}  // namespace

Result<Descriptor> open_local_socket(System& system, Endpoint& local) {
  const bool any = local.address.is_unspecified();
  auto socket = open_socket(system, local.address.is_v4() ? AF_INET : AF_INET6);
  if (!socket && any && !local.address.is_v4()) {
    local.address = IpAddress::v4(0);
    socket = open_socket(system, AF_INET);
  }
  if (socket && !local.address.is_v4()) {
    set_option(system, socket->get(), IPPROTO_IPV6, IPV6_V6ONLY, any ? 0 : 1);
  }
  return socket;
}

Result<Reservation> Reservation::open(System& system, const Endpoint& local,
                                      const std::vector<IpAddress>& addresses) {
  for (int left = local.port == 0 ? kPortTries : 1;; --left) {
    Reservation made(system, local);
    // The system takes a port that it has chosen by itself back when a connect() fails. So it is
    // bound by its number.
    if (local.port == 0) {
      const Result<uint16_t> port = choose_port(system, addresses.front());
      if (!port) return tl::unexpected(port.error());
      made.local_.port = *port;
    }
    Status added;
    for (const IpAddress& address : addresses) {
      added = made.add(address);
      if (!added) break;
    }
    if (added) return made;
    if (left == 1 || added.error().code != ErrorCode::AlreadyExists) {
      return tl::unexpected(added.error());
    }
  }
}

Status Reservation::add(const IpAddress& address) {
  Endpoint local{address, local_.port};
  auto socket = open_local_socket(system_, local);
  if (!socket) return tl::unexpected(socket.error());
  if (const int error = bind_alone(system_, socket->get(), local); error != 0) {
    return tl::unexpected(reserve_error(local, error));
  }
  addresses_.push_back(local.address);
  sockets_.push_back(std::move(*socket));
  return {};
}

bool Reservation::let_others_in(const Descriptor& socket, bool yes) {
  return set_option(system_, socket.get(), SOL_SOCKET, SO_REUSEADDR, yes ? 1 : 0);
}

Reservation::~Reservation() {
  // A process that is being forked has the socket for a moment longer than this one.
  for (const Descriptor& socket : sockets_) let_others_in(socket, true);
}

Status Reservation::listen(int backlog) {
  for (const Descriptor& socket : sockets_) {
    const auto begin = [&] { return system_.listen(socket.get(), backlog) == 0 ? 0 : errno; };
    // Nobody gets in between if the socket listens before it has SO_REUSEADDR. Only if connections
    // that a former owner has left are in the way, the option has to come first.
    int error = begin();
    let_others_in(socket, true);  // for whoever listens there after this one
    if (error == EADDRINUSE) error = begin();
    if (error == 0) continue;
    stop_listening();
    return tl::unexpected(system_error("listen on " + to_string(local_), error));
  }
  return {};
}

void Reservation::stop_listening() {
  for (const Descriptor& socket : sockets_) {
    let_others_in(socket, false);
    system_.shutdown(socket.get(), SHUT_RD);
  }
}

Result<Descriptor*> Reservation::connect(const IpAddress& source, const Endpoint& remote,
                                         int& error) {
  const auto fits = [&](const IpAddress& address) {
    return address == source ||
           (address.is_unspecified() && (!address.is_v4() || remote.address.is_v4()));
  };
  const auto found = std::find_if(addresses_.begin(), addresses_.end(), fits);
  if (found == addresses_.end()) {
    return base::fail(ErrorCode::InvalidArgument, "connect: " + to_string(local_) +
                                                      " is not reserved at an address that can "
                                                      "speak to " +
                                                      to_string(remote));
  }
  Descriptor& socket = sockets_[static_cast<size_t>(found - addresses_.begin())];
  const SystemAddress address(remote, !found->is_v4());
  const bool begun = system_.connect(socket.get(), address.get(), address.size) == 0;
  error = begun || errno == EINPROGRESS ? 0 : errno;
  if (error != 0 && error != ECONNREFUSED) {
    return tl::unexpected(connect_error({*found, local_.port}, remote, error));
  }
  let_others_in(socket, true);  // the port may be bound again while the connection is in TIME-WAIT
  return &socket;
}

void Reservation::dissolve(const Descriptor& socket) {
  let_others_in(socket, false);
  sockaddr nobody{};
  nobody.sa_family = AF_UNSPEC;
  system_.connect(socket.get(), &nobody, sizeof nobody);
}

}  // namespace rnic::socket

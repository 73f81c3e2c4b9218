/// \file
/// A port of the system's that is kept for this process before it is used.
#pragma once

#include <vector>

#include "base/fail.hpp"
#include "rnic/address.hpp"
#include "socket/system.hpp"

namespace rnic::socket {

/// How often the system is asked for a port: one that is free at one of our addresses may not be so
/// at the next.
inline constexpr int kPortTries = 16;

/// Opens a socket to be bound to `local`. `::` takes both IP versions if the system has both; if it
/// has only IPv4, `local` becomes 0.0.0.0.
[[nodiscard]] Result<Descriptor> open_local_socket(System& system, Endpoint& local);

/// Sockets that are bound to one port, one for each address, and that nobody can connect to yet.
/// They have no SO_REUSEADDR, so the system gives the port to nobody else, by bind() or as the
/// source of a connect(). When the process ends, however it does, the port is free at once.
class Reservation {
 public:
  /// \param addresses those that `local` stands for, at least one; with port 0 the system chooses a
  ///        port that is free at all of them
  /// AlreadyExists: another socket has the port
  static Result<Reservation> open(System& system, const Endpoint& local,
                                  const std::vector<IpAddress>& addresses);
  Reservation(Reservation&&) = default;
  Reservation& operator=(Reservation&&) = delete;
  /// Frees the port, unless the sockets were taken.
  ~Reservation();

  /// The endpoint as it was asked for, with the port.
  [[nodiscard]] const Endpoint& local() const { return local_; }
  [[nodiscard]] const std::vector<Descriptor>& sockets() const { return sockets_; }

  /// Has all sockets listen, or none of them.
  Status listen(int backlog);
  /// Undoes listen(): peers that have connected meanwhile are reset.
  void stop_listening();
  /// The sockets, which listen, leave the reservation.
  [[nodiscard]] std::vector<Descriptor> take() { return std::move(sockets_); }

  /// Connects the socket of `source`, or else the one of all addresses, to `remote`. \return that
  /// socket, whose connect() is under way, or has ended at once: `error` is then the system's
  /// InvalidArgument: there is no socket of the peer's IP version. After an error, and after
  /// dissolve(), the reservation is as it was.
  Result<Descriptor*> connect(const IpAddress& source, const Endpoint& remote, int& error);
  /// Undoes connect().
  void dissolve(const Descriptor& socket);

 private:
  Reservation(System& system, const Endpoint& local) : system_(system), local_(local) {}
  Status add(const IpAddress& address);
  bool let_others_in(const Descriptor& socket, bool yes);

  System& system_;
  Endpoint local_;
  std::vector<IpAddress> addresses_;  // one for each socket
  std::vector<Descriptor> sockets_;
};

}  // namespace rnic::socket

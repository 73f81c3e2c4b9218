/// \file
/// Transport: the interface that opens connections. `tcp` implements it over a port,
/// `drivers/socket` over the system's TCP.
#pragma once

#include <cstdint>
#include <optional>

#include "base/fail.hpp"
#include "base/time.hpp"
#include "llp/stream.hpp"
#include "rnic/device_info.hpp"
#include "rnic/tcp_options.hpp"

namespace rnic::llp {

/// Called for each new inbound connection once its handshake has completed.
class Acceptor {
 public:
  virtual ~Acceptor() = default;
  /// \return the user of the new stream, or nullptr to refuse it (RST). The user's established()
  /// follows.
  virtual StreamUser* accept(Stream& stream, const Endpoint& local, const Endpoint& remote,
                             base::Now now) = 0;
  /// Octets that the user of a connection from `remote` will have room for at first. The handshake
  /// offers a window of at most this size before accept() names the user, because an offer cannot
  /// be taken back (RFC 9293 s.3.8.6).
  [[nodiscard]] virtual uint32_t first_room(const Endpoint& remote) const {
    (void)remote;
    return UINT32_MAX;
  }
  /// The transport has no place left for a newcomer: the acceptor may abort a stream that is worth
  /// less. \return it has aborted one
  virtual bool make_room(base::Now now) {
    (void)now;
    return false;
  }
};

/// Is called between taking octets from below and handing them up, so that a receive that was
/// posted before the peer sent is known when the peer's message is looked at.
class BeforeHandUp {
 public:
  virtual ~BeforeHandUp() = default;
  virtual void before_hand_up() = 0;
};

/// \return whether both have the same port at some address; an unspecified address stands for all
[[nodiscard]] inline bool overlap(const Endpoint& a, const Endpoint& b) {
  return a.port == b.port &&
         (a.address == b.address || a.address.is_unspecified() || b.address.is_unspecified());
}

/// The right by which a caller uses a port of this side.
enum class PortClaim : uint8_t {
  None,      ///< the port has to be free
  Reserved,  ///< the caller has it reserved: the call takes the reservation over, and ends it
};

class Transport {
 public:
  virtual ~Transport() = default;

  /// Keeps `local` for the caller: nobody listens there, connects from there, or is given the port
  /// where it is to be chosen, but by PortClaim::Reserved. Connections that have the port already
  /// go on. An unspecified address stands for every address. With port 0 the transport chooses one
  /// on which nobody listens. AlreadyExists: somebody listens on the port, or has it reserved, at
  /// one of these addresses. Reservations and listeners together have one limit.
  /// \return what is reserved, which unreserve() takes
  virtual Result<Endpoint> reserve(const Endpoint& local) = 0;
  /// Ends a reservation that nobody has taken over: the port is free at once.
  virtual Status unreserve(const Endpoint& reserved) = 0;

  /// Accepts connections to `local`. With port 0 the transport chooses a port on which nobody
  /// listens. AlreadyExists when taken. `acceptor` must outlive the listener. After an error a
  /// reservation is as it was.
  /// \param claim Reserved: `local` is what reserve() returned
  /// \param options of TCP for all that is accepted there; the values are in their ranges
  /// \return what is listened on, which unlisten() takes
  virtual Result<Endpoint> listen(const Endpoint& local, Acceptor& acceptor,
                                  PortClaim claim = PortClaim::None,
                                  const TcpOptions& options = {}) = 0;
  /// Stops listening; connections that exist go on.
  virtual Status unlisten(const Endpoint& local) = 0;

  /// Starts an active open. local.port == 0 chooses an ephemeral port. The outcome comes as
  /// user.established() or user.ended(). The Stream is valid until ended(). After an error a
  /// reservation is as it was.
  /// \param claim Reserved: `local` is what reserve() returned, or one of its addresses
  /// \param options of TCP; the values are in their ranges
  virtual Result<Stream*> connect(const Endpoint& local, const Endpoint& remote, StreamUser& user,
                                  base::Now now, PortClaim claim = PortClaim::None,
                                  const TcpOptions& options = {}) = 0;
  /// Changes options of a stream of this transport that has not ended; what is not set stays.
  /// Unsupported names the first that could not be set; the others are.
  virtual Status choose(Stream& stream, const TcpOptions& options, base::Now now) = 0;

  /// Takes arrived octets and hands them up, at most a turn's worth. \return how much was served;
  /// 0: nothing had arrived. A transport to which segments are passed, as to `tcp`, has nothing to
  /// take.
  virtual uint32_t receive(base::Now now, BeforeHandUp& before) {
    (void)now;
    (void)before;
    return 0;
  }
  /// Fires timers that are due.
  virtual void on_timers(base::Now now) = 0;
  /// Serves ready connections: pulls records and sends segments and ACKs.
  virtual void output(base::Now now) = 0;
  /// The time by which on_timers() has to be called; kNever when no timer runs.
  [[nodiscard]] virtual base::Now next_deadline() const = 0;

  /// A snapshot of a stream of this transport that has not ended. It is for tools and people, not
  /// for the data path.
  [[nodiscard]] virtual TransportInfo describe(const Stream& stream, base::Now now) const {
    (void)stream;
    (void)now;
    return {};
  }

  /// A descriptor for a caller that sleeps until something comes: after this call poll() finds it
  /// readable as soon as receive() has something to do, now or later. Each call returns the same
  /// descriptor, which the caller neither reads nor closes. nullopt: there is none, and receive()
  /// has to be called again and again.
  virtual std::optional<int> arm() { return std::nullopt; }
};

}  // namespace rnic::llp

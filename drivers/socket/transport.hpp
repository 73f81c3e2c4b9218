/// \file
/// llp::Transport over the system's TCP sockets.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <vector>

#include "base/memory_use.hpp"
#include "base/slab.hpp"
#include "base/timer_wheel.hpp"
#include "llp/transport.hpp"
#include "socket/config.hpp"
#include "socket/connection.hpp"
#include "socket/counters.hpp"
#include "socket/epoll.hpp"
#include "socket/lone_waker.hpp"
#include "socket/reservation.hpp"
#include "socket/system.hpp"

namespace rnic::socket {

/// Polled by one thread; no call blocks. All errors of the system become a Status here, or a
/// StreamEnd of the stream they belong to.
class Transport final : public llp::Transport, private ConnectionOwner {
 public:
  /// Environment when the system gives no epoll. \param system outlives the transport
  static Result<std::unique_ptr<Transport>> open(const Config& config, base::Now now,
                                                 System& system = own_system());
  /// Resets what is still open. The users, which may be gone, are not told.
  ~Transport() override;
  /// The memory that a transport allocates at construction, by the key that sizes it.
  [[nodiscard]] static base::MemoryUses memory_use(const Config& config);

  // An unspecified local address: Config::addresses, and with none of them every address of both IP
  // versions that the system has.

  /// Also no other process can bind the port, or gets it as the source of a connect().
  Result<Endpoint> reserve(const Endpoint& local) override;
  Status unreserve(const Endpoint& reserved) override;
  Result<Endpoint> listen(const Endpoint& local, llp::Acceptor& acceptor,
                          llp::PortClaim claim = llp::PortClaim::None,
                          const TcpOptions& options = {}) override;
  Status unlisten(const Endpoint& local) override;
  Result<llp::Stream*> connect(const Endpoint& local, const Endpoint& remote, llp::StreamUser& user,
                               base::Now now, llp::PortClaim claim = llp::PortClaim::None,
                               const TcpOptions& options = {}) override;
  Status choose(llp::Stream& stream, const TcpOptions& options, base::Now now) override;
  uint32_t receive(base::Now now, llp::BeforeHandUp& before) override;
  void on_timers(base::Now now) override;
  void output(base::Now now) override;
  [[nodiscard]] base::Now next_deadline() const override;
  std::optional<int> arm() override {
    has_slept_ = true;
    return epoll_.fd();
  }
  [[nodiscard]] TransportInfo describe(const llp::Stream& stream, base::Now now) const override;

  /// Has each sleep() end while `descriptor`, which belongs to the caller, is readable. \return
  /// false: the system does not take it
  [[nodiscard]] bool wake_by(int descriptor) const { return epoll_.wake_by(descriptor); }
  /// In place of a sleep on the descriptor, for the thread that polls and has called arm(): sleeps
  /// until receive() has something to do or a descriptor of wake_by() is readable. The thread is
  /// told who has woken it, and the system learns that the one that wakes it is about to sleep
  /// itself, as it does not where another descriptor lies in between (decision 57).
  void sleep() { epoll_.sleep(); }

  [[nodiscard]] const Counters& counters() const { return counters_; }
  [[nodiscard]] uint32_t live_connections() const { return connections_.live(); }
  /// \return whether there is no connection, not even one that waits for its end
  [[nodiscard]] bool quiescent() const { return connections_.live() == 0; }

 private:
  struct Listener {
    uint64_t number = 0;  // names it to epoll
    Endpoint local;
    llp::Acceptor* acceptor = nullptr;
    TcpOptions options;
    std::vector<Descriptor> descriptors;
    bool deferred = false;      // epoll is silent about it until accepts_again_
    bool was_reserved = false;  // it has listened for a moment without SO_REUSEADDR
  };
  using Reservations = std::vector<std::unique_ptr<Reservation>>;

  Transport(const Config& config, System& system, Epoll epoll, base::Now now);

  // ConnectionOwner
  void list(Connection& connection) override;
  void lacks_space(Connection& connection) override;
  void room_grew() override { space_grew_ = true; }
  void reap_later(Connection& connection) override { to_reap_.push_back(connection.handle()); }
  void arm(Connection& connection, base::Now deadline) override {
    connection.arm(timers_, deadline);
  }
  void disarm(Connection& connection) override { connection.disarm(timers_); }

  bool watch_output(Connection& connection, bool yes) override;
  uint32_t take_events(base::Now now);
  bool guess();
  uint32_t read_all(base::Now now, llp::BeforeHandUp& before);

  /// ResourceExhausted when listeners and reservations together are as many as there may be.
  [[nodiscard]] Status check_room() const;
  [[nodiscard]] std::vector<IpAddress> addresses_of(const Endpoint& local) const;
  [[nodiscard]] bool is_reserved(const Endpoint& local) const;
  /// The reservation that `local` is among. NotFound: there is none.
  [[nodiscard]] Result<Reservations::iterator> find_reservation(const char* call,
                                                                const Endpoint& local);
  Result<Endpoint> listen_on_reserved(const Endpoint& local, llp::Acceptor& acceptor,
                                      const TcpOptions& options);
  Result<Connection*> connect_from_reserved(const Endpoint& local, const Endpoint& remote,
                                            const TcpOptions& options, int& error);
  [[nodiscard]] Status watch_all(const Listener& listener,
                                 const std::vector<Descriptor>& descriptors);
  /// Listens on each of the addresses that `local` stands for; with port 0 on the port that the
  /// system chooses for the first.
  Status open_listeners(Listener& listener, const Endpoint& local);
  Result<Descriptor> open_listener(const Endpoint& local, const TcpOptions& options);
  /// Our end of a connection to `remote`, with what the configuration says of it.
  [[nodiscard]] Endpoint source_of(const Endpoint& local, const Endpoint& remote) const;
  [[nodiscard]] Status bind_source(int descriptor, const Endpoint& local,
                                   const Endpoint& remote) const;
  Result<Connection*> connect_from_free(const Endpoint& local, const Endpoint& remote,
                                        const TcpOptions& options, int& error);
  void set_buffers(int descriptor) const;
  /// Has a socket begin with its buffers and options.
  [[nodiscard]] Status prepare(int descriptor, const TcpOptions& options);
  [[nodiscard]] Status prepare(const std::vector<Descriptor>& sockets, const TcpOptions& options);
  void stop(const Listener& listener) const;
  [[nodiscard]] Listener* find_listener(uint64_t number);
  void accept_all(Listener& listener, base::Now now);
  /// There is no place for a peer that asks: its listener, which epoll would report at each turn,
  /// is watched again only later.
  void defer_accepts(Listener& listener, base::Now now);
  void resume_accepts();
  /// Accepts one connection. \return false: none can be accepted now
  bool accept_one(Listener& listener, int descriptor, base::Now now);
  /// Ends a connection that is worth less than a newcomer, if there is one.
  bool make_room(Listener& listener, base::Now now);
  Connection* add(Descriptor&& descriptor, const Endpoint& remote, Connection::State state);
  void serve_those_waiting();
  void reap(base::Now now);

  Config config_;
  System& system_;
  Counters counters_;
  Epoll epoll_;
  std::vector<std::unique_ptr<Listener>> listeners_;
  Reservations reservations_;  // Invariant: with listeners_ at most Config::max_listeners
  uint64_t listeners_made_ = 0;
  base::Now accepts_again_ = base::kNever;  // kNever: no listener is deferred
  base::Slab<Connection> connections_;
  std::vector<base::Handle> listed_;   // they have something to do; some may be gone
  std::vector<base::Handle> serving_;  // those of the turn under way
  std::vector<base::Handle> waiting_;  // they lack space; some may have gone on or be gone
  bool space_grew_ = false;
  std::vector<base::Handle> to_reap_;
  LoneWaker alone_;
  bool has_slept_ = false;  // since the last turn
  std::vector<uint8_t> buffer_;  // between the system and the user, during one call
  base::TimerWheel timers_;
};

}  // namespace rnic::socket

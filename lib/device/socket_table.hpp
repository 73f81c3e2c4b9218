/// \file
/// The sockets of one kind that a device has: their table, their listeners, and the behaviour that
/// sockets of all kinds share. A kind supplies the rest; the two kinds are StreamKind and
/// FramedKind.
///
///     struct Kind {
///       using Octets;   // an llp::StreamUser with the application's side: the base of a socket
///       using Socket;   // final; made of (Place, const Setup&, Shared&), with
///                       // Status begin(llp::Stream&, const Setup&)
///       using Setup;    // how a socket begins
///       static Status check(const Setup&);  // what is wrong with it
///       using Shared;   // what all sockets share: made of (limits, counters), first_room()
///       static uint32_t max_sockets(const Limits&);
///       static constexpr const char *kLimit, *kName, *kListen;
///       static constexpr uint32_t kBacklog;  // of a listener that is not told
///       static constexpr uint64_t DeviceCounters::*kOpened, *kAccepted, *kRefused;
///     };
#pragma once

#include <algorithm>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "base/check.hpp"
#include "base/fail.hpp"
#include "base/slab.hpp"
#include "base/spsc_ring.hpp"
#include "base/starved.hpp"
#include "device/app_socket.hpp"
#include "device/config.hpp"
#include "device/counters.hpp"
#include "tcp/tcp.hpp"

namespace rnic::device {

/// Takes an accepted socket once it is established.
template <class Socket>
class SocketTaker {
 public:
  virtual void hand_over(Socket& socket) = 0;

 protected:
  ~SocketTaker() = default;
};

/// The arguments that every socket is made from.
template <class Socket>
struct Place {
  SocketOwner& owner;
  SocketTaker<Socket>* taker = nullptr;  ///< nullptr for active opens
  Endpoint local;
  Endpoint remote;
};

/// A socket: carries out the application's commands on the octets of its kind.
template <class Kind>
class TcpSocket : public Kind::Octets, public AppSocket {
 public:
  using Octets = typename Kind::Octets;
  using Socket = typename Kind::Socket;

  template <class... Arguments>
  explicit TcpSocket(const Place<Socket>& place, Arguments&&... arguments)
      : Octets(std::forward<Arguments>(arguments)...),
        AppSocket(place.owner, place.local, place.remote),
        taker_(place.taker) {}

  // AppSocket
  [[nodiscard]] bool is_open() const override { return Octets::is_established(); }
  [[nodiscard]] std::optional<StreamEnd> end() const override { return Octets::how_ended(); }
  [[nodiscard]] uint64_t unacknowledged_octets() const override { return Octets::unacknowledged(); }
  [[nodiscard]] bool is_drained() const override {
    const bool over = Octets::peer_has_finished() || Octets::how_ended() == StreamEnd::Closed;
    return over && Octets::unread() == 0;
  }
  void execute(base::Now now) override {
    const uint8_t commands = AppSocket::commands();
    const bool released = (commands & kRelease) != 0;
    if (Octets::stream() == nullptr) {
      if (released) owner().done_with(*this);
      return;
    }
    const bool unheard = released && !Octets::is_established() && Octets::unacknowledged() == 0;
    if ((commands & kAbort) != 0 || (unheard && !is_converted())) return Octets::abort();
    if (is_converted()) return;
    Octets::serve();
    if (released) owner().no_reader(*Octets::stream(), now);
    // Octets that the application had put before the connection was there are sent first.
    if ((commands & (kFinish | kRelease)) != 0 && Octets::is_established()) Octets::close();
  }

  // llp::StreamUser
  void established(uint32_t emss, base::Now now) override {
    Octets::established(emss, now);
    if (taker_ != nullptr) std::exchange(taker_, nullptr)->hand_over(static_cast<Socket&>(*this));
    if (commands() != 0) execute(now);
  }
  void ended(StreamEnd how, base::Now now) override {
    const bool released = is_released();
    Octets::ended(how, now);
    // For a command that comes later execute() finds the stream gone.
    if (released) owner().done_with(*this);
  }

 protected:
  /// \return whether an MPA session has the stream (perhaps for good) and decides when it ends
  [[nodiscard]] virtual bool is_converted() const { return false; }

 private:
  SocketTaker<Socket>* taker_;  // until the socket is handed over
};

/// The services that a listener needs from the table that it stands in.
template <class Kind>
class ListenerOwner {
 public:
  using Socket = typename Kind::Socket;
  /// Makes a socket for `stream`; nullptr: there is no place for it.
  virtual Socket* incoming(SocketTaker<Socket>& taker, const typename Kind::Setup& setup,
                           llp::Stream& stream, const Endpoint& local, const Endpoint& remote) = 0;
  /// Octets of receive room that a new socket of the kind has.
  [[nodiscard]] virtual uint32_t first_room() const = 0;
  virtual void count_refused() = 0;
  virtual void count_accepted() = 0;
  virtual void unlisten(AppListener& listener, base::Now now) = 0;

 protected:
  ~ListenerOwner() = default;
};

template <class Kind>
class SocketListener final : public AppListener, private SocketTaker<typename Kind::Socket> {
 public:
  using Socket = typename Kind::Socket;

  SocketListener(ListenerOwner<Kind>& owner, uint32_t backlog, const typename Kind::Setup& setup)
      : owner_(owner), setup_(setup), waiting_(backlog) {}

  /// Application side, one thread at a time: the oldest connection, or nullptr.
  Socket* next() {
    Socket* socket = nullptr;
    return waiting_.pop(socket) ? socket : nullptr;
  }

  // Worker's side.
  llp::StreamUser* accept(llp::Stream& stream, const Endpoint& local, const Endpoint& remote,
                          base::Now) override {
    Socket* socket = nullptr;
    if (waiting_.size() < waiting_.capacity()) {
      socket = owner_.incoming(*this, setup_, stream, local, remote);
    }
    if (socket == nullptr) owner_.count_refused();
    return socket;
  }
  [[nodiscard]] uint32_t first_room(const Endpoint&) const override { return owner_.first_room(); }
  void stop(base::Now now) override { owner_.unlisten(*this, now); }
  void abort_waiting(base::Now now) {
    while (Socket* socket = next()) {
      socket->request(AppSocket::kAbort | AppSocket::kRelease);
      socket->execute(now);
    }
  }

 private:
  void hand_over(Socket& socket) override {
    const bool fits = waiting_.push(&socket);
    RNIC_CHECK(fits);  // accept() has checked, and established() follows at once
    owner_.count_accepted();
  }

  ListenerOwner<Kind>& owner_;
  const typename Kind::Setup setup_;
  base::SpscRing<Socket*> waiting_;
};

/// All sockets of a kind.
template <class Kind>
class SocketTable final : private SocketOwner, private ListenerOwner<Kind> {
 public:
  using Socket = typename Kind::Socket;
  using Setup = typename Kind::Setup;
  using Shared = typename Kind::Shared;
  using Listener = SocketListener<Kind>;

  /// \param first_doorbell the first of Kind::max_sockets(limits) consecutive doorbells
  /// \param stack, counters outlive the table
  SocketTable(const Limits& limits, uint32_t first_doorbell, tcp::Stack& stack,
              DeviceCounters& counters)
      : max_sockets_(Kind::max_sockets(limits)),
        first_doorbell_(first_doorbell),
        stack_(stack),
        counters_(counters),
        shared_(limits, counters),
        sockets_(max_sockets_),
        by_number_(max_sockets_) {
    done_.reserve(2 * size_t{max_sockets_});
  }
  /// Octets of memory that the places of `sockets` sockets take, without the shared rings.
  [[nodiscard]] static uint64_t socket_octets_for(uint64_t sockets) {
    return base::Slab<Socket>::octets_for(sockets);
  }

  // --- Worker ---

  /// \param options, setup apply to each connection accepted here \param wanted nothing:
  /// Kind::kBacklog, or as many as there may be
  Result<Listener*> listen(const Endpoint& local, std::optional<uint32_t> wanted,
                           const tcp::ConnectionOptions& options, const Setup& setup,
                           llp::PortClaim claim = llp::PortClaim::None) {
    const uint32_t backlog = wanted.value_or(std::min(Kind::kBacklog, max_sockets_));
    if (backlog == 0 || backlog > max_sockets_) {
      return base::fail(ErrorCode::InvalidArgument, std::string(Kind::kListen) + ": backlog " +
                                                        std::to_string(backlog) + ": give 1 to " +
                                                        Kind::kLimit + " (" +
                                                        std::to_string(max_sockets_) + ")");
    }
    if (auto status = Kind::check(setup); !status) return tl::unexpected(status.error());
    listeners_.reserve(listeners_.size() + 1);
    ListenerOwner<Kind>& owner = *this;
    auto listener = std::make_unique<Listener>(owner, backlog, setup);
    const auto listening = stack_.listen(local, *listener, until_closed(options), claim);
    if (!listening) return tl::unexpected(listening.error());
    listener->listening_on(*listening);
    listeners_.push_back(std::move(listener));
    return listeners_.back().get();
  }
  Result<Socket*> connect(const Endpoint& local, const Endpoint& remote,
                          const tcp::ConnectionOptions& options, const Setup& setup,
                          base::Now now) {
    if (auto status = Kind::check(setup); !status) return tl::unexpected(status.error());
    Socket* socket = add(nullptr, setup, local, remote);
    if (socket == nullptr) return none_left();
    Result<llp::Stream*> stream;
    const auto dial = [&] {
      stream = stack_.connect(local, remote, *socket, until_closed(options), now);
    };
    if (!base::attempt(dial)) stream = out_of_memory();
    if (!stream) {
      remove(*socket);
      return tl::unexpected(std::move(stream.error()));
    }
    socket->set_local((*stream)->local());
    Status status;
    const auto begin = [&] { status = socket->begin(**stream, setup); };
    if (!base::attempt(begin)) status = out_of_memory();
    if (!status) {
      socket->request(AppSocket::kAbort | AppSocket::kRelease);
      socket->execute(now);
      return tl::unexpected(status.error());
    }
    ++(counters_.*Kind::kOpened);
    return socket;
  }
  /// WrongState when the stream has ended.
  Status set_options(Socket& socket, const tcp::ConnectionOptions& options, base::Now now) {
    if (socket.stream() == nullptr) return has_ended();
    return stack_.set_options(*socket.stream(), options, now);
  }
  [[nodiscard]] Result<tcp::ConnectionOptions> options(Socket& socket) const {
    if (socket.stream() == nullptr) return has_ended();
    return stack_.options(*socket.stream());
  }
  /// \return whether the doorbell belongs to a socket of this table
  bool serve_doorbell(uint32_t number, base::Now now) {
    const uint32_t at = number - first_doorbell_;
    if (number < first_doorbell_ || at >= max_sockets_ || by_number_[at] == nullptr) return false;
    by_number_[at]->execute(now);
    return true;
  }
  /// Takes away sockets that nobody needs any more.
  void reap() {
    if (done_.empty()) return;
    for (const base::Handle handle : done_) {
      if (Socket* socket = sockets_.get(handle); socket != nullptr) remove(*socket);
    }
    done_.clear();
  }
  void abort_all() {
    sockets_.for_each([](base::Handle, Socket& socket) { socket.abort(); });
  }
  [[nodiscard]] uint32_t live() const { return sockets_.live(); }
  [[nodiscard]] const Shared& shared() const { return shared_; }
  /// Recounts the sockets, checks that each stands under its number, and checks the rings of each.
  void validate() {
    sockets_.validate();
    uint32_t numbered = 0;
    for (const Socket* socket : by_number_) numbered += socket != nullptr ? 1 : 0;
    RNIC_CHECK(numbered == live());
    sockets_.for_each([this](base::Handle handle, const Socket& socket) {
      RNIC_CHECK(by_number_[handle.index] == &socket);
      socket.validate();
    });
  }

 private:
  // SocketOwner
  void done_with(AppSocket& socket) override { done_.push_back(socket.handle()); }
  void no_reader(llp::Stream& stream, base::Now now) override {
    tcp::ConnectionOptions options = stack_.options(stream);
    options.half_close = false;
    options.half_duplex_close = true;  // nobody will read what has come or will come
    const Status done = stack_.set_options(stream, options, now);
    RNIC_CHECK(done.has_value());  // these two changes make no valid options invalid
  }

  // ListenerOwner
  Socket* incoming(SocketTaker<Socket>& taker, const Setup& setup, llp::Stream& stream,
                   const Endpoint& local, const Endpoint& remote) override {
    Socket* socket = add(&taker, setup, local, remote);
    if (socket == nullptr) return nullptr;
    bool begun = false;
    static_cast<void>(base::attempt([&] { begun = socket->begin(stream, setup).has_value(); }));
    if (begun) return socket;
    remove(*socket);
    return nullptr;
  }
  [[nodiscard]] uint32_t first_room() const override { return shared_.first_room(); }
  void count_refused() override { ++(counters_.*Kind::kRefused); }
  void count_accepted() override { ++(counters_.*Kind::kAccepted); }
  void unlisten(AppListener& listener, base::Now now) override {
    static_cast<void>(stack_.unlisten(listener.local()));
    static_cast<Listener&>(listener).abort_waiting(now);
    std::erase_if(listeners_, [&](const auto& mine) { return mine.get() == &listener; });
  }

  [[nodiscard]] tl::unexpected<Error> none_left() const {
    return base::fail(ErrorCode::ResourceExhausted, std::string("no ") + Kind::kName +
                                                        " left: raise " + Kind::kLimit + " (now " +
                                                        std::to_string(max_sockets_) + ")");
  }
  [[nodiscard]] static tl::unexpected<Error> out_of_memory() {
    return base::fail(ErrorCode::ResourceExhausted, base::kOutOfMemory);
  }
  [[nodiscard]] static tl::unexpected<Error> has_ended() {
    return base::fail(ErrorCode::WrongState, "the stream has ended: use another one");
  }
  /// The application decides how long a half-closed stream lives.
  [[nodiscard]] static tcp::ConnectionOptions until_closed(tcp::ConnectionOptions options) {
    options.half_close = true;
    return options;
  }
  Socket* add(SocketTaker<Socket>* taker, const Setup& setup, const Endpoint& local,
              const Endpoint& remote) {
    const Place<Socket> place{*this, taker, local, remote};
    const base::Handle handle = sockets_.emplace(place, setup, shared_);
    Socket* socket = sockets_.get(handle);
    if (socket == nullptr) return nullptr;
    socket->set_place(handle, first_doorbell_ + handle.index);
    by_number_[handle.index] = socket;
    return socket;
  }
  void remove(Socket& socket) {
    const base::Handle handle = socket.handle();
    by_number_[handle.index] = nullptr;
    sockets_.erase(handle);
  }

  const uint32_t max_sockets_;
  const uint32_t first_doorbell_;
  tcp::Stack& stack_;
  DeviceCounters& counters_;
  Shared shared_;
  base::Slab<Socket> sockets_;
  std::vector<Socket*> by_number_;
  std::vector<std::unique_ptr<Listener>> listeners_;  // limited by tcp.max_listeners
  std::vector<base::Handle> done_;                    // released and ended: to be reaped
};

}  // namespace rnic::device

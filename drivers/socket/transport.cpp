#include "socket/transport.hpp"

#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/epoll.h>
#include <sys/socket.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <utility>

#include "base/log.hpp"
#include "base/starved.hpp"
#include "socket/system_info.hpp"

namespace rnic::socket {

using base::fail;

namespace {

constexpr uint32_t kAcceptsPerTurn = 16;
// Without EPOLLOUT a connection is ready only while it has something to read: who sleeps on epoll
// is not woken by one whose octets were read before epoll was asked.
constexpr uint32_t kAllOfThePeer = EPOLLIN | EPOLLPRI | EPOLLRDHUP | EPOLLET;
constexpr uint32_t kAllOfAStream = kAllOfThePeer | EPOLLOUT;
// A place may come free without our knowledge, such as a descriptor of the process.
constexpr base::Duration kDeferAccepts = std::chrono::milliseconds(10);
constexpr uint64_t kListenerBit = uint64_t{1} << 63;

// epoll gives back 64 bits: a connection's handle, or a listener's number and kListenerBit.
uint64_t to_word(base::Handle handle) {
  return (uint64_t{handle.generation} << 32 | handle.index) & ~kListenerBit;
}
base::Handle to_handle(uint64_t word) {
  return {static_cast<uint32_t>(word), static_cast<uint32_t>(word >> 32)};
}

}  // namespace

Result<std::unique_ptr<Transport>> Transport::open(const Config& config, base::Now now,
                                                   System& system) {
  auto epoll = Epoll::open(system);
  if (!epoll) return tl::unexpected(epoll.error());
  return std::unique_ptr<Transport>(new Transport(config, system, std::move(*epoll), now));
}

Transport::Transport(const Config& config, System& system, Epoll epoll, base::Now now)
    : config_(config),
      system_(system),
      epoll_(std::move(epoll)),
      connections_(config.max_connections),
      buffer_(config.receive_buffer),
      timers_(now) {
  listed_.reserve(2 * size_t{config.max_connections});
  serving_.reserve(2 * size_t{config.max_connections});
  waiting_.reserve(2 * size_t{config.max_connections});
  to_reap_.reserve(config.max_connections);
}

base::MemoryUses Transport::memory_use(const Config& config) {
  const uint64_t connections = config.max_connections;
  return {{"limits.max_connections", base::Slab<Connection>::octets_for(connections) +
                                         7 * connections * sizeof(base::Handle)}};
}

Transport::~Transport() {
  for (const auto& listener : listeners_) stop(*listener);
  connections_.for_each([this](base::Handle, Connection& connection) {
    disarm(connection);
    reset_on_close(system_, connection.descriptor());
  });
}

// --- listening ---

Status Transport::check_room() const {
  if (listeners_.size() + reservations_.size() < config_.max_listeners) return {};
  return fail(ErrorCode::ResourceExhausted, "no listener left: raise tcp.max_listeners (now " +
                                                std::to_string(config_.max_listeners) + ")");
}

std::vector<IpAddress> Transport::addresses_of(const Endpoint& local) const {
  if (local.address.is_unspecified() && !config_.addresses.empty()) return config_.addresses;
  return {local.address};
}

bool Transport::is_reserved(const Endpoint& local) const {
  return local.port != 0 &&
         std::any_of(reservations_.begin(), reservations_.end(),
                     [&](const auto& mine) { return llp::overlap(mine->local(), local); });
}

namespace {

tl::unexpected<Error> reserved(const char* call, const Endpoint& local) {
  return fail(ErrorCode::AlreadyExists, std::string(call) + ": " + to_string(local) +
                                            " is reserved for another use; choose another port");
}

}  // namespace

Result<Transport::Reservations::iterator> Transport::find_reservation(const char* call,
                                                                      const Endpoint& local) {
  const auto is_among = [&](const auto& mine) {
    return llp::overlap(mine->local(), local) &&
           (mine->local() == local || mine->local().address.is_unspecified());
  };
  const auto found = std::find_if(reservations_.begin(), reservations_.end(), is_among);
  if (found != reservations_.end()) return found;
  return fail(ErrorCode::NotFound, std::string(call) + ": nobody has reserved " + to_string(local));
}

Result<Endpoint> Transport::reserve(const Endpoint& local) {
  if (is_reserved(local)) return reserved("reserve", local);
  const auto is_there = [&](const auto& mine) { return llp::overlap(mine->local, local); };
  if (local.port != 0 && std::any_of(listeners_.begin(), listeners_.end(), is_there)) {
    return fail(ErrorCode::AlreadyExists,
                "reserve: " + to_string(local) + " is listened on; choose another port");
  }
  if (auto status = check_room(); !status) return tl::unexpected(status.error());
  auto opened = Reservation::open(system_, local, addresses_of(local));
  if (!opened) return tl::unexpected(opened.error());
  reservations_.push_back(std::make_unique<Reservation>(std::move(*opened)));
  return reservations_.back()->local();
}

Status Transport::unreserve(const Endpoint& reserved) {
  const auto found = find_reservation("unreserve", reserved);
  if (!found) return tl::unexpected(found.error());
  reservations_.erase(*found);
  return {};
}

Result<Endpoint> Transport::listen(const Endpoint& local, llp::Acceptor& acceptor,
                                   llp::PortClaim claim, const TcpOptions& options) {
  if (claim == llp::PortClaim::Reserved) return listen_on_reserved(local, acceptor, options);
  const auto same = [&](const auto& listener) { return listener->local == local; };
  if (std::any_of(listeners_.begin(), listeners_.end(), same)) {
    return fail(ErrorCode::AlreadyExists,
                "listen: " + to_string(local) + " is listened on already");
  }
  if (is_reserved(local)) return reserved("listen", local);
  if (auto status = check_room(); !status) return tl::unexpected(status.error());
  auto listener = std::make_unique<Listener>();
  listener->number = listeners_made_++;
  listener->acceptor = &acceptor;
  listener->options = options;
  // Of several addresses, another process may have the port that the system chooses for the first.
  Status opened;
  for (int left = local.port == 0 ? kPortTries : 1; left > 0; --left) {
    opened = open_listeners(*listener, local);
    if (opened || opened.error().code != ErrorCode::AlreadyExists) break;
  }
  if (!opened) return tl::unexpected(opened.error());
  const Endpoint listening = listener->local;
  listeners_.push_back(std::move(listener));
  return listening;
}

Status Transport::watch_all(const Listener& listener, const std::vector<Descriptor>& descriptors) {
  const uint64_t word = listener.number | kListenerBit;
  for (size_t i = 0; i < descriptors.size(); ++i) {
    if (epoll_.watch(EPOLL_CTL_ADD, descriptors[i].get(), EPOLLIN, word)) continue;
    const int error = errno;
    while (i-- != 0) epoll_.watch(EPOLL_CTL_DEL, descriptors[i].get(), 0, word);
    return tl::unexpected(system_error("listen", error));
  }
  return {};
}

Result<Endpoint> Transport::listen_on_reserved(const Endpoint& local, llp::Acceptor& acceptor,
                                               const TcpOptions& options) {
  const auto found = find_reservation("listen", local);
  if (!found) return tl::unexpected(found.error());
  Reservation& reservation = ***found;
  auto listener = std::make_unique<Listener>();
  listener->number = listeners_made_++;
  listener->local = reservation.local();
  listener->acceptor = &acceptor;
  listener->options = options;
  listener->was_reserved = true;
  listeners_.reserve(listeners_.size() + 1);  // from here on nothing needs memory of ours
  if (auto status = prepare(reservation.sockets(), options); !status) {
    return tl::unexpected(status.error());
  }
  if (auto status = reservation.listen(static_cast<int>(config_.backlog)); !status) {
    return tl::unexpected(status.error());
  }
  if (auto status = watch_all(*listener, reservation.sockets()); !status) {
    reservation.stop_listening();
    return tl::unexpected(status.error());
  }
  listener->descriptors = reservation.take();
  listeners_.push_back(std::move(listener));
  reservations_.erase(*found);
  return listeners_.back()->local;
}

Status Transport::open_listeners(Listener& listener, const Endpoint& local) {
  listener.local = local;
  listener.descriptors.clear();
  for (const IpAddress& address : addresses_of(local)) {
    auto descriptor = open_listener({address, listener.local.port}, listener.options);
    if (!descriptor) return tl::unexpected(descriptor.error());
    if (listener.local.port == 0) {
      SystemAddress bound;
      if (system_.getsockname(descriptor->get(), bound.get(), &bound.size) != 0) {
        return tl::unexpected(system_error("listen", errno));
      }
      listener.local.port = bound.endpoint().port;
    }
    const uint64_t word = listener.number | kListenerBit;
    if (!epoll_.watch(EPOLL_CTL_ADD, descriptor->get(), EPOLLIN, word)) {
      return tl::unexpected(system_error("listen", errno));
    }
    listener.descriptors.push_back(std::move(*descriptor));
  }
  return {};
}

Result<Descriptor> Transport::open_listener(const Endpoint& local, const TcpOptions& options) {
  Endpoint wanted = local;
  auto descriptor = open_local_socket(system_, wanted);
  if (!descriptor) return descriptor;
  const int fd = descriptor->get();
  set_option(system_, fd, SOL_SOCKET, SO_REUSEADDR, 1);
  // Accepted sockets inherit all of that, and what answers a SYN depends on it.
  if (auto status = prepare(fd, options); !status) return tl::unexpected(status.error());
  const SystemAddress address(wanted);
  if (system_.bind(fd, address.get(), address.size) != 0 ||
      system_.listen(fd, static_cast<int>(config_.backlog)) != 0) {
    return tl::unexpected(system_error("listen on " + to_string(local), errno));
  }
  return descriptor;
}

void Transport::set_buffers(int descriptor) const {
  if (config_.system_send_buffer != 0) {
    set_option(system_, descriptor, SOL_SOCKET, SO_SNDBUF,
               static_cast<int>(config_.system_send_buffer));
  }
  if (config_.system_receive_buffer != 0) {
    set_option(system_, descriptor, SOL_SOCKET, SO_RCVBUF,
               static_cast<int>(config_.system_receive_buffer));
  }
}

Status Transport::prepare(int descriptor, const TcpOptions& options) {
  set_buffers(descriptor);
  return apply(system_, descriptor, options);
}

Status Transport::prepare(const std::vector<Descriptor>& sockets, const TcpOptions& options) {
  Status all;
  for (const Descriptor& socket : sockets) {
    if (all) all = prepare(socket.get(), options);
  }
  return all;
}

Status Transport::choose(llp::Stream& stream, const TcpOptions& options, base::Now) {
  return static_cast<Connection&>(stream).choose(options);
}

Status Transport::unlisten(const Endpoint& local) {
  const auto found = std::find_if(listeners_.begin(), listeners_.end(),
                                  [&](const auto& listener) { return listener->local == local; });
  if (found == listeners_.end()) {
    return fail(ErrorCode::NotFound, "unlisten: " + to_string(local) + " is not listened on");
  }
  stop(**found);
  listeners_.erase(found);
  return {};
}

/// A process that is being forked may have the socket for a moment longer than this one, and would
/// keep the port taken.
void Transport::stop(const Listener& listener) const {
  for (const Descriptor& descriptor : listener.descriptors) {
    system_.shutdown(descriptor.get(), SHUT_RD);
  }
}

Transport::Listener* Transport::find_listener(uint64_t number) {
  const auto found = std::find_if(listeners_.begin(), listeners_.end(),
                                  [&](const auto& mine) { return mine->number == number; });
  return found == listeners_.end() ? nullptr : found->get();
}

void Transport::accept_all(Listener& listener, base::Now now) {
  for (Descriptor& descriptor : listener.descriptors) {
    for (uint32_t i = 0; i < kAcceptsPerTurn; ++i) {
      if (!accept_one(listener, descriptor.get(), now)) break;
    }
  }
}

/// Meanwhile peers that ask wait in the backlog, and the system refuses them when it is full.
void Transport::defer_accepts(Listener& listener, base::Now now) {
  ++counters_.accepts_deferred;
  listener.deferred = true;
  accepts_again_ = base::earlier(accepts_again_, now + kDeferAccepts);
  for (const Descriptor& descriptor : listener.descriptors) {
    epoll_.watch(EPOLL_CTL_MOD, descriptor.get(), 0, listener.number | kListenerBit);
  }
}

void Transport::resume_accepts() {
  accepts_again_ = base::kNever;
  for (const auto& listener : listeners_) {
    if (!std::exchange(listener->deferred, false)) continue;
    for (const Descriptor& descriptor : listener->descriptors) {
      epoll_.watch(EPOLL_CTL_MOD, descriptor.get(), EPOLLIN, listener->number | kListenerBit);
    }
  }
}

bool Transport::make_room(Listener& listener, base::Now now) {
  if (!listener.acceptor->make_room(now)) return false;
  ++counters_.places_made;
  reap(now);
  return true;
}

bool Transport::accept_one(Listener& listener, int descriptor, base::Now now) {
  if (connections_.live() == config_.max_connections) {
    // Nobody gives way for a peer that is not there.
    if (!has_waiting_peer(system_, descriptor)) return false;
    if (!make_room(listener, now)) {
      defer_accepts(listener, now);
      return false;
    }
  }
  SystemAddress peer;
  Descriptor accepted(
      system_.accept4(descriptor, peer.get(), &peer.size, SOCK_NONBLOCK | SOCK_CLOEXEC), system_);
  if (!accepted.open()) {
    if (errno == EAGAIN || errno == EWOULDBLOCK) return false;
    const bool scarce = errno == EMFILE || errno == ENFILE || errno == ENOBUFS || errno == ENOMEM;
    if (scarce && make_room(listener, now)) return true;
    if (scarce) {
      defer_accepts(listener, now);
    } else {
      ++counters_.accept_errors;
    }
    return !scarce;  // an error of one connection does not concern the next
  }
  if (listener.was_reserved) set_option(system_, accepted.get(), SOL_SOCKET, SO_REUSEADDR, 1);
  const Endpoint remote = peer.endpoint();
  Connection* connection = nullptr;
  const bool made = base::attempt(
      [&] { connection = add(std::move(accepted), remote, Connection::State::Open); });
  if (!made) {
    ++counters_.accepts_refused;
    reset_on_close(system_, accepted.get());  // every refused peer gets a reset
    return true;
  }
  connection->learn_local();
  static_cast<void>(connection->choose(listener.options));  // the listener has them, too
  llp::StreamUser* user = listener.acceptor->accept(*connection, connection->local(), remote, now);
  if (user == nullptr) {
    ++counters_.accepts_refused;
    connection->end_with(StreamEnd::Aborted);
    return true;
  }
  ++counters_.accepts;
  connection->set_user(*user);
  if (connection->is_over()) return true;  // its taker has ended it at once
  if (!epoll_.watch(EPOLL_CTL_ADD, connection->descriptor(), kAllOfThePeer,
             to_word(connection->handle()))) {
    connection->end_with(StreamEnd::Aborted);
    return true;
  }
  connection->open(now);
  return true;
}

// --- connecting ---

Connection* Transport::add(Descriptor&& descriptor, const Endpoint& remote,
                           Connection::State state) {
  ConnectionOwner& owner = *this;
  const base::Handle handle = connections_.emplace(owner, system_, config_, counters_,
                                                   std::move(descriptor), remote, state);
  Connection* connection = connections_.get(handle);
  if (connection != nullptr) connection->name(handle);
  return connection;
}

Endpoint Transport::source_of(const Endpoint& local, const Endpoint& remote) const {
  Endpoint source = local;
  if (!source.address.is_unspecified()) return source;
  const auto mine =
      std::find_if(config_.addresses.begin(), config_.addresses.end(),
                   [&](const IpAddress& a) { return a.is_v4() == remote.address.is_v4(); });
  if (mine != config_.addresses.end()) source.address = *mine;
  return source;
}

Status Transport::bind_source(int descriptor, const Endpoint& local, const Endpoint& remote) const {
  Endpoint source = source_of(local, remote);
  if (source.address.is_unspecified() && source.port == 0) return {};
  if (source.address.is_unspecified() && remote.address.is_v4()) {
    source.address = IpAddress::v4(0);
  }
  // The port is chosen when the peer is known: many connections to different peers may share one. A
  // port that the application has chosen may be in TIME-WAIT towards another peer.
  source.port == 0 ? set_option(system_, descriptor, IPPROTO_IP, IP_BIND_ADDRESS_NO_PORT, 1)
                   : set_option(system_, descriptor, SOL_SOCKET, SO_REUSEADDR, 1);
  const SystemAddress address(source);
  if (system_.bind(descriptor, address.get(), address.size) == 0) return {};
  return tl::unexpected(system_error("connect from " + to_string(source), errno));
}

/// \param error of a connect() that has ended at once; 0: it is under way
Result<Connection*> Transport::connect_from_free(const Endpoint& local, const Endpoint& remote,
                                                 const TcpOptions& options, int& error) {
  if (is_reserved(local)) return reserved("connect", local);
  auto descriptor = open_socket(system_, remote.address.is_v4() ? AF_INET : AF_INET6);
  if (!descriptor) return tl::unexpected(descriptor.error());
  const int fd = descriptor->get();
  auto status = prepare(fd, options);
  if (status) status = bind_source(fd, local, remote);
  if (!status) return tl::unexpected(status.error());
  const SystemAddress address(remote);
  error = 0;
  if (system_.connect(fd, address.get(), address.size) != 0 && errno != EINPROGRESS) error = errno;
  if (error != 0 && error != ECONNREFUSED) {
    return tl::unexpected(connect_error(local, remote, error));
  }
  return add(std::move(*descriptor), remote, Connection::State::Connecting);
}

/// \param error as for connect_from_free()
Result<Connection*> Transport::connect_from_reserved(const Endpoint& local, const Endpoint& remote,
                                                     const TcpOptions& options, int& error) {
  const auto found = find_reservation("connect", local);
  if (!found) return tl::unexpected(found.error());
  Reservation& reservation = ***found;
  if (auto status = prepare(reservation.sockets(), options); !status) {
    return tl::unexpected(status.error());
  }
  const auto socket = reservation.connect(source_of(local, remote).address, remote, error);
  if (!socket) return tl::unexpected(socket.error());
  Connection* connection = nullptr;
  const bool made = base::attempt(
      [&] { connection = add(std::move(**socket), remote, Connection::State::Connecting); });
  if (!made) {
    reservation.dissolve(**socket);
    return fail(ErrorCode::ResourceExhausted, base::kOutOfMemory);
  }
  reservations_.erase(*found);
  return connection;
}

Result<llp::Stream*> Transport::connect(const Endpoint& local, const Endpoint& remote,
                                        llp::StreamUser& user, base::Now now, llp::PortClaim claim,
                                        const TcpOptions& options) {
  if (connections_.live() == config_.max_connections) {
    return fail(ErrorCode::ResourceExhausted,
                "no connection left: raise limits.max_connections (now " +
                    std::to_string(config_.max_connections) + ")");
  }
  int error = 0;
  const auto made = claim == llp::PortClaim::Reserved
                        ? connect_from_reserved(local, remote, options, error)
                        : connect_from_free(local, remote, options, error);
  if (!made) return tl::unexpected(made.error());
  Connection* const connection = *made;
  ++counters_.connects;
  connection->set_user(user);
  connection->learn_local();
  static_cast<void>(connection->choose(options));  // the system has taken them before
  arm(*connection, now + config_.connect_timeout);
  if (error != 0) {
    connection->end_with(StreamEnd::Refused);
  } else if (!epoll_.watch(EPOLL_CTL_ADD, connection->descriptor(), kAllOfAStream,
                    to_word(connection->handle()))) {
    connection->end_with(StreamEnd::Aborted);
  }
  return connection;
}

// --- the loop ---

void Transport::list(Connection& connection) {
  if (connection.enlist()) listed_.push_back(connection.handle());
}

void Transport::lacks_space(Connection& connection) {
  if (connection.begin_waiting()) waiting_.push_back(connection.handle());
}

/// Connections that wait are served before those that have just had their turn, which otherwise
/// would take again the space that they gave back.
void Transport::serve_those_waiting() {
  space_grew_ = false;
  for (const base::Handle handle : waiting_) {
    Connection* connection = connections_.get(handle);
    if (connection == nullptr) continue;
    connection->left_waiting();
    connection->look_again();
    if (connection->enlist()) serving_.push_back(handle);
  }
  waiting_.clear();
}

bool Transport::watch_output(Connection& connection, bool yes) {
  return epoll_.watch(EPOLL_CTL_MOD, connection.descriptor(), yes ? kAllOfAStream : kAllOfThePeer,
               to_word(connection.handle()));
}

/// \return how many events there were
uint32_t Transport::take_events(base::Now now) {
  const std::span<const epoll_event> events = epoll_.take();
  for (const epoll_event& event : events) {
    const uint64_t word = event.data.u64;
    if ((word & kListenerBit) != 0) {
      Listener* listener = find_listener(word & ~kListenerBit);
      if (listener != nullptr) accept_all(*listener, now);
    } else if (Connection* connection = connections_.get(to_handle(word)); connection != nullptr) {
      connection->on_epoll(event.events, now);
    }
  }
  const bool is_one = events.size() == 1 && events[0].events == EPOLLIN;
  if (is_one && (events[0].data.u64 & kListenerBit) == 0) {
    alone_.note(events[0].data.u64);
  } else if (!events.empty()) {
    alone_.forget();
  }
  return static_cast<uint32_t>(events.size());
}

/// A thread that has slept was probably woken by the connection that woke it before.
/// \return whether that one is read in this turn
bool Transport::guess() {
  if (!std::exchange(has_slept_, false) || epoll_.has_events()) return false;
  if (!alone_.take_guess()) return false;
  Connection* connection = connections_.get(to_handle(alone_.word()));
  if (connection != nullptr && connection->expect_octets()) return true;
  alone_.forget();
  return false;
}

uint32_t Transport::receive(base::Now now, llp::BeforeHandUp& before) {
  if (guess()) {
    if (const uint32_t work = read_all(now, before); work != 0) return work;
    alone_.forget();
  }
  const uint32_t events = take_events(now);
  return events + read_all(now, before);
}

/// Reads what the connections in the list have. \return how many reads brought something
uint32_t Transport::read_all(base::Now now, llp::BeforeHandUp& before) {
  uint32_t work = 0;
  serving_.clear();
  if (space_grew_) serve_those_waiting();
  serving_.insert(serving_.end(), listed_.begin(), listed_.end());
  listed_.clear();
  for (const base::Handle handle : serving_) {
    Connection* connection = connections_.get(handle);
    if (connection == nullptr) continue;
    connection->left_list();
    work += connection->receive(buffer_, before, now);
    if (connection->wants_reading() || connection->wants_sending()) list(*connection);
  }
  reap(now);
  return work;
}

TransportInfo Transport::describe(const llp::Stream& stream, base::Now) const {
  const auto* connection = dynamic_cast<const Connection*>(&stream);
  return connection == nullptr ? TransportInfo{} : ask_info(system_, connection->descriptor());
}

void Transport::output(base::Now now) {
  serving_.clear();
  serving_.swap(listed_);
  for (const base::Handle handle : serving_) {
    Connection* connection = connections_.get(handle);
    if (connection == nullptr) continue;
    connection->left_list();
    connection->send(now);
    if (connection->wants_reading() || connection->wants_sending()) list(*connection);
  }
  reap(now);
}

void Transport::on_timers(base::Now now) {
  if (accepts_again_ <= now) resume_accepts();
  timers_.expire(now, [now](base::TimerNode& node) {
    static_cast<Connection*>(node.owner)->timer_fired(now);
  });
  reap(now);
}

base::Now Transport::next_deadline() const {
  if (epoll_.has_events() || !listed_.empty() || !to_reap_.empty()) return base::Now{};
  if (space_grew_ && !waiting_.empty()) return base::Now{};
  return base::earlier(accepts_again_, timers_.next_deadline());
}

void Transport::reap(base::Now now) {
  // A call of ended() may end other connections.
  for (size_t i = 0; i < to_reap_.size(); ++i) {
    Connection* connection = connections_.get(to_reap_[i]);
    if (connection == nullptr) continue;
    connection->finish(now);
    connections_.erase(base::Handle(to_reap_[i]));
    space_grew_ = true;
    if (accepts_again_ != base::kNever) accepts_again_ = now;  // there is a place now
  }
  to_reap_.clear();
}

}  // namespace rnic::socket

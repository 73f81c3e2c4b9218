#include "device/connection_service.hpp"

#include <algorithm>

#include "base/check.hpp"
#include "base/fail.hpp"
#include "base/log.hpp"
#include "base/starved.hpp"
#include "device/connection_events.hpp"

namespace rnic::device {

using base::fail;

namespace {

constexpr const char* kEnded = "ended by this side's application";
constexpr const char* kCancelled = "cancelled by this side's application (cancel_connect)";
constexpr const char* kAborted = "ended by this side's administrator (Device::abort)";

// MPAA-6-05, MPA-A.2-01: each connection chooses whether its sender packs and whether it waits.
tcp::ConnectionOptions chosen(const tcp::ConnectionOptions& before, const TcpChoice& choice) {
  auto options = tcp::merged(before, choice.options);
  RNIC_CHECK(options.has_value());  // ConnectRules has looked at the values
  options->pack_records = choice.packing.value_or(options->pack_records);
  return *options;
}

}  // namespace

ConnectionService::ConnectionService(const DeviceConfig& config, const Parts& parts, base::Now now)
    : config_(config),
      resources_(parts.resources),
      consumers_(parts.consumers),
      events_(parts.events),
      reserved_ports_(parts.reserved_ports),
      framing_(parts.framing),
      counters_(parts.counters),
      doorbells_(parts.doorbells),
      rules_(config),
      connections_(config, parts.counters, now),
      requests_(config, connections_, listeners_, parts.consumers, parts.counters),
      control_(config, connections_, parts.resources, now),
      redials_(connections_.capacity(), parts.resources, parts.events, parts.counters),
      start_timers_(now),
      inbound_logged_(kInboundLogged, now) {
  connections_.set_leaving(*this);
  // It takes connections that end at moments in which no memory may be allocated.
  orphans_.reserve(connections_.capacity());
}

Status ConnectionService::choose_tcp(llp::Stream& stream, const TcpChoice& choice, base::Now now) {
  if (choice == TcpChoice{}) return {};
  if (own_ == nullptr) return transport_->choose(stream, choice.options, now);
  return own_->stack.set_options(stream, chosen(own_->stack.options(stream), choice), now);
}

Result<Endpoint> ConnectionService::listen(const Endpoint& local, const ListenOptions& options,
                                           uint32_t consumer, llp::PortClaim claim) {
  auto status = own_ != nullptr ? own_->check_listen("listen", local) : Status{};
  if (status) status = rules_.check_listen(options);
  if (status) status = consumers_.check("listen", consumer);
  if (status) status = reserved_ports_.check("listen", local, consumer, claim);
  if (!status) return tl::unexpected(status.error());
  const uint64_t more = claim == llp::PortClaim::Reserved ? 0 : 1;  // a reservation counts already
  TakenShare share(consumers_, consumer, "listen", {.listeners = more});
  if (!share.status()) return tl::unexpected(share.status().error());
  // The listener's memory comes before the transport listens.
  Listeners::Node node = listeners_.make(options, consumer);
  auto listening =
      own_ == nullptr ? transport_->listen(listened_on(local), *this, claim, options.tcp)
                      : own_->stack.listen(
                            listened_on(local), *this,
                            chosen(own_->stack.default_options(), {.options = options.tcp}), claim);
  if (!listening) {
    return tl::unexpected(reserved_ports_.named(std::move(listening.error()), listened_on(local)));
  }
  reserved_ports_.became_listener(*listening, claim);
  listeners_.add(std::move(node), *listening);
  share.keep();
  return listening;
}

Status ConnectionService::unlisten(const Endpoint& local, uint32_t consumer) {
  const Listeners::Listener* const listener = listeners_.at(listened_on(local));
  // The transport may have a listener there that is a stream's: that one ends by its own handle.
  if (listener == nullptr) {
    return fail(ErrorCode::NotFound, "unlisten: nobody listens for RDMA connections on " +
                                         to_string(local) + ": use what listen() returned");
  }
  const uint32_t owner = listener->consumer;
  if (!consumers_.may_end_listeners(consumer, owner)) {
    return fail(ErrorCode::PermissionDenied, "unlisten: another consumer listens on " +
                                                 to_string(local) +
                                                 ": leave that to it, or end its handle first");
  }
  auto status = transport_->unlisten(listened_on(local));
  if (status) {
    listeners_.remove(listened_on(local));
    consumers_.give_back(owner, {.listeners = 1});
  }
  return status;
}

void ConnectionService::count(Consumers::Found& found) {
  listeners_.for_each(
      [&](const Listeners::Listener& listener) { ++found[listener.consumer].listeners; });
  connections_.for_each([&](const Connection& connection) {
    if (connection.state() == ConnectionState::Requested) {
      ++found[connection.listener().consumer].requests;
    }
    if (connection.queue_pair() == nullptr) return;
    const auto owner = consumers_.owner_of(connection.queue_pair()->spec().hold_share);
    if (owner) found[*owner].held_octets += connection.held_octets();
  });
}

/// An event names its listener, unless the application has called unlisten() since, or has
/// converted the stream.
template <typename Kind>
void ConnectionService::name_listener(const Connection& connection, Kind& event) const {
  const Listeners::Listener* listener = listeners_.get(connection.listener());
  if (listener == nullptr) return;
  event.listener = connection.listener().local;
  event.listener_context = listener->options.context;
  if (connection.queue_pair() == nullptr) event.context = event.listener_context;
}

Result<Endpoint> ConnectionService::local_towards(const Endpoint& remote,
                                                  const Endpoint& source) const {
  if (remote.port == 0 || !remote.address.is_unicast()) {
    return fail(ErrorCode::InvalidArgument,
                "connect: " + to_string(remote) +
                    " is nobody's: give the address of one host and a port, 1 to 65535");
  }
  if (!source.address.is_unspecified() &&
      (!source.address.is_unicast() || source.address.is_v4() != remote.address.is_v4())) {
    return fail(ErrorCode::InvalidArgument,
                "connect: " + to_string(source) + " cannot speak to " + to_string(remote) +
                    ": give an address of this device that has the peer's family, or none");
  }
  if (own_ == nullptr) return source;  // the transport chooses the rest
  return own_->local_towards(remote, source);
}

Status ConnectionService::connect(QueuePair& qp, const Endpoint& remote,
                                  base::ByteView private_data, base::Now now,
                                  const ConnectOptions& options, llp::PortClaim claim) {
  auto status = control_.check_unconnected(qp);
  if (status) {
    status = reserved_ports_.check("connect", options.source, resources_.consumer_of(qp), claim);
  }
  if (!status) return status;
  ConnectOptions resolved = options;
  resolved.framing = options.framing.value_or(config_.framing);
  status = rules_.check_connect(qp, resolved);
  if (!status) return status;
  // A destination without a route is refused before a connection has to give way to this one.
  if (auto local = local_towards(remote, options.source); !local) {
    return tl::unexpected(local.error());
  }
  qp.choose_tcp({options.packing, options.tcp});
  if (resolved.framing == Framing::Tuf) {
    return dial_framed(qp, remote, private_data, options, claim, now);
  }
  return dial(qp, remote, private_data, options, claim, false, now);
}

/// Begins an active connect over MPA. \param again this is the second attempt
Status ConnectionService::dial(QueuePair& qp, const Endpoint& remote, base::ByteView private_data,
                               const ConnectOptions& options, llp::PortClaim claim, bool again,
                               base::Now now) {
  const mpa::Config config = rules_.mpa_config(options.start);
  const framing::StartOptions start_options = rules_.make_start_options(options, qp.spec());
  if (auto status = ConnectRules::check_request(private_data, config, start_options); !status) {
    return status;
  }
  // RFC 6581 s.10: revision 1 has no equivalent of the peer-to-peer model, so only the application
  // can know whether it can do without.
  const bool newest = mpa::plan_request(config, start_options).header.revision == 2;
  const bool may_fall_back = options.start.fall_back.value_or(!start_options.peer_to_peer);
  std::unique_ptr<Connection::Redial> redial;
  if (newest && !again && config.redial && may_fall_back) {
    redial = std::make_unique<Connection::Redial>(Connection::Redial{
        qp.number(), remote, {private_data.begin(), private_data.end()}, options});
    redial->options.start.revision = 1;
    redial->options.peer_to_peer = false;
    redial->options.source.port = 0;  // the port of the first attempt may be in TIME-WAIT
  }
  const base::Handle handle =
      make(framing::Role::Initiator, config, private_data, start_options, now);
  const auto connection = start(handle, qp, remote, options.source, claim, now);
  if (!connection) return tl::unexpected(connection.error());
  (*connection)->keep_redial(std::move(redial));
  if (again) (*connection)->set_fell_back();
  return {};
}

Status ConnectionService::dial_framed(QueuePair& qp, const Endpoint& remote,
                                      base::ByteView private_data, const ConnectOptions& options,
                                      llp::PortClaim claim, base::Now now) {
  if (private_data.size() > wire::kTufPrivateDataMax) {
    return fail(ErrorCode::InvalidArgument, "private data of " +
                                                std::to_string(private_data.size()) +
                                                " octets: at most 512 with ULP framing");
  }
  framing::StartOptions start_options = rules_.make_start_options(options, qp.spec());
  start_options.exchange_reads = options.exchange_reads.value_or(true);
  const base::Handle handle = make(framing::Role::Initiator, rules_.tuf_config(options.start),
                                   private_data, start_options, now);
  const auto connection = start(handle, qp, remote, options.source, claim, now);
  if (!connection) return tl::unexpected(connection.error());
  return {};
}

/// Does TCP's part of an active connect. \param handle the connection's place; invalid: there is
/// none
Result<Connection*> ConnectionService::start(base::Handle handle, QueuePair& qp,
                                             const Endpoint& remote, const Endpoint& source,
                                             llp::PortClaim claim, base::Now now) {
  Connection* connection = connections_.get(handle);
  if (connection == nullptr) return tl::unexpected(no_connection_left().error());
  auto place = connections_.tentative(handle);
  const auto local = local_towards(remote, source);
  if (!local) return tl::unexpected(local.error());
  const Status opened =
      own_ == nullptr
          ? connection->open(*transport_, qp.tcp_choice().options, *local, remote, now, claim)
          : connection->open(own_->stack, chosen(own_->stack.default_options(), qp.tcp_choice()),
                             *local, remote, now, claim);
  if (!opened) {
    // A reservation is not in the way of the call that claims it.
    const bool claimed = claim == llp::PortClaim::Reserved;
    return tl::unexpected(claimed ? opened.error() : reserved_ports_.named(opened.error(), *local));
  }
  reserved_ports_.used(source, claim);
  place.keep();
  // The time-out covers the whole start-up with the TCP handshake: it also ends a silent peer.
  connection->arm_start(start_timers_, now + connection->start_timeout());
  connection->bind(qp, now);
  return connection;
}

// --- Streaming connections become RDMA connections (RFC 5044 s.7.1.3 to s.7.1.5) ---

Result<Connection*> ConnectionService::convert(StreamSocket& socket, framing::Role role,
                                               const mpa::Config& config, base::ByteView data,
                                               const framing::StartOptions& start_options,
                                               base::ByteView last_message, base::Now now) {
  if (const auto status = socket.can_be_converted(); !status) return tl::unexpected(status.error());
  const base::Handle handle = make(role, config, data, start_options, now);
  Connection* connection = connections_.get(handle);
  if (connection == nullptr) return tl::unexpected(no_connection_left().error());
  auto place = connections_.tentative(handle);
  connection->convert(socket, last_message, now);
  place.keep();
  const Status done = own_->stack.set_options(*socket.stream(), own_->stack.default_options(), now);
  RNIC_CHECK(done.has_value());  // these are the options of every RDMA connection
  return connection;
}

Status ConnectionService::connect(QueuePair& qp, StreamSocket& socket, base::ByteView private_data,
                                  base::Now now, const ConnectOptions& options) {
  if (auto status = control_.check_unconnected(qp); !status) return status;
  if (options.framing == Framing::Tuf) {
    return fail(ErrorCode::Unsupported,
                "a streaming connection becomes an RDMA connection over MPA only (RFC 5044 "
                "s.7.1.3): for ULP framing use connect() without a stream");
  }
  if (options.source != Endpoint{}) {
    return fail(ErrorCode::InvalidArgument,
                "a streaming connection has its source already: leave ConnectOptions::source out");
  }
  ConnectOptions over_mpa = options;
  over_mpa.framing = Framing::Mpa;
  if (auto status = rules_.check_connect(qp, over_mpa); !status) return status;
  const mpa::Config config = rules_.mpa_config(options.start);
  const framing::StartOptions start_options = rules_.make_start_options(options, qp.spec());
  if (auto status = ConnectRules::check_request(private_data, config, start_options); !status) {
    return status;
  }
  qp.choose_tcp({options.packing, options.tcp});
  const auto connection =
      convert(socket, framing::Role::Initiator, config, private_data, start_options, {}, now);
  if (!connection) return tl::unexpected(connection.error());
  (*connection)->arm_start(start_timers_, now + (*connection)->start_timeout());
  (*connection)->bind(qp, now);
  return {};
}

Status ConnectionService::await_rdma(StreamSocket& socket, base::ByteView last_message,
                                     base::Now now) {
  // The session keeps a copy of it beside the stream's rings.
  if (last_message.size() > socket.ring_octets()) {
    return fail(ErrorCode::InvalidArgument,
                "await_rdma: a last message of " + std::to_string(last_message.size()) +
                    " octets: at most limits.stream_buffer (" +
                    std::to_string(socket.ring_octets()) + "), send() what comes before");
  }
  if (requests_.full()) {
    return fail(ErrorCode::ResourceExhausted,
                "too many connection requests wait: answer them, or raise "
                "limits.max_pending_requests");
  }
  const auto connection =
      convert(socket, framing::Role::Responder, config_.mpa, {}, {}, last_message, now);
  if (!connection) return tl::unexpected(connection.error());
  (*connection)->arm_start(start_timers_, now + config_.mpa.start_timeout);
  return {};
}

// --- What goes on, and what ends ---

Status ConnectionService::no_connection_left() const {
  return fail(ErrorCode::ResourceExhausted,
              "no connection left: raise limits.max_connections (now " +
                  std::to_string(config_.limits.max_connections) + ")");
}

Status ConnectionService::cancel_connect(QueuePair& qp) {
  if (redials_.cancel(qp, [] { return kCancelled; })) return {};
  const Connection* connection = connections_.get(qp.connection());
  if (connection == nullptr || connection->is_responder() || connection->outcome_reported() ||
      !connection->has_stream()) {
    return fail(ErrorCode::WrongState,
                "cancel_connect: no connect of the queue pair is under way; disconnect(), drain() "
                "and modify() end a connection");
  }
  if (connection->evicted_for() == nullptr) connections_.evict(connection->handle(), kCancelled);
  return {};
}

template <class Config>
base::Handle ConnectionService::make(framing::Role role, const Config& config,
                                     base::ByteView private_data,
                                     const framing::StartOptions& start_options, base::Now now) {
  ConnectionOwner& owner = *this;
  return connections_.make(now, owner, framing_, role, config, private_data, start_options);
}

/// Makes the Connection of a peer that connects to `local`. \param name gets the name of the
/// listener
base::Handle ConnectionService::make_inbound(const Endpoint& local, ListenerName& name,
                                             base::Now now) {
  const Listeners::Listener* listener = listeners_.find(local, name);
  const ListenOptions options = listener != nullptr ? listener->options : ListenOptions{};
  if (options.framing.value_or(config_.framing) == Framing::Tuf) {
    return make(framing::Role::Responder, rules_.tuf_config(options.start), {}, {}, now);
  }
  return make(framing::Role::Responder, rules_.mpa_config(options.start), {}, {}, now);
}

llp::StreamUser* ConnectionService::accept(llp::Stream& stream, const Endpoint& local,
                                           const Endpoint& remote, base::Now now) {
  connections_.admit_start(remote.address, now);
  base::Handle handle;
  ListenerName listener;
  const bool made = base::attempt([&] { handle = make_inbound(local, listener, now); });
  if (!made) {
    ++counters_.starved_connections;
    connections_.note_refused([] { return "refused: out of memory"; }, remote, now);
    return nullptr;
  }
  Connection* connection = connections_.get(handle);
  if (connection == nullptr) {
    ++counters_.requests_refused;
    const auto why = [&] {
      return "refused: all " + std::to_string(config_.limits.max_connections) +
             " of limits.max_connections are in use";
    };
    connections_.note_refused(why, remote, now);
    return nullptr;
  }
  connection->take(stream, local, remote, listener);
  connections_.seat_start(*connection);
  connection->arm_start(start_timers_, now + connection->start_timeout());
  return connection->stream_user();
}

void ConnectionService::give_up(Connection& connection) {
  ++counters_.starved_connections;
  base::log(base::LogLevel::Warning, "rnic", [&] {
    return config_.name + ": the connection with " + to_string(connection.remote()) +
           " was given up: out of memory";
  });
  connection.abort();
}

void ConnectionService::request_received(Connection& connection, base::ByteView private_data) {
  ++counters_.connect_requests;
  auto event = about<event::ConnectRequest>(connection);
  name_listener(connection, event);
  event.request = connection.request();
  // The application decides by the private data: without them it cannot be asked.
  const bool kept =
      base::attempt([&] { event.private_data.assign(private_data.begin(), private_data.end()); });
  if (!kept) return give_up(connection);
  event.facts = connection.agreed();
  if (!events_.emit_unsolicited(std::move(event))) requests_.add_unheard(connection);
}

/// An application that does not read its events answers nobody: its requests make room for others.
void ConnectionService::reject_unheard(base::Now now) {
  requests_.reject_unheard([&](RequestHandle request) {
    if (!reject(request, {}, now)) return;  // gone meanwhile
    ++counters_.requests_unheard;
    if (!inbound_logged_.allow(now)) return;
    base::log(base::LogLevel::Warning, "rnic", [&] {
      return config_.name +
             ": requests are rejected because half of the event queue is full: "
             "read the events, or raise limits.max_events";
    });
  });
}

Status ConnectionService::accept(RequestHandle request, QueuePair& qp, base::ByteView private_data,
                                 base::Now now, const ConnectOptions& options) {
  if (auto status = control_.check_unconnected(qp); !status) return status;
  if (auto status = rules_.check_answer(qp, options); !status) return status;
  auto connection = requests_.find(request);
  if (!connection) return tl::unexpected(connection.error());
  if ((*connection)->listener().consumer != resources_.consumer_of(qp)) {
    return fail(ErrorCode::PermissionDenied,
                "accept: the queue pair belongs to another consumer than the listener that the "
                "request came to: use one of that consumer");
  }
  auto fits = rules_.check_private_data(private_data, (*connection)->private_data_max(),
                                        (*connection)->agreed().revision);
  if (!fits) return fits;
  qp.choose_tcp({options.packing, options.tcp});
  (*connection)->accept(qp, private_data, rules_.make_start_options(options, qp.spec()), now);
  requests_.over(**connection);
  return {};
}

/// Ends a connect between its two attempts, which has no connection. \return whether it was one
bool ConnectionService::end_redial(QueuePair& qp) {
  return redials_.cancel(qp, [] { return kEnded; });
}

Status ConnectionService::disconnect(QueuePair& qp) {
  return end_redial(qp) ? Status{} : control_.disconnect(qp);
}

Status ConnectionService::drain(QueuePair& qp, base::Duration limit, base::Now now) {
  return end_redial(qp) ? Status{} : control_.drain(qp, limit, now);
}

Status ConnectionService::modify(QueuePair& qp, const QueuePairChange& change, base::Now now) {
  if (change.state == QueuePairState::Error) end_redial(qp);
  if (!change.tcp) return control_.modify(qp, change);
  if (auto status = rules_.check_tcp(*change.tcp, "QueuePairChange::tcp"); !status) return status;
  Connection* connection = connections_.get(qp.connection());
  if (connection == nullptr || !connection->has_stream()) {
    return fail(ErrorCode::WrongState,
                "modify: options of TCP belong to a connection, and there is none: give them to "
                "connect() or accept()");
  }
  if (change.state) {
    return fail(ErrorCode::InvalidArgument,
                "modify: options of TCP are of no use where the state changes: leave one out");
  }
  if (auto status = control_.modify(qp, change); !status) return status;
  return connection->choose_tcp({.packing = {}, .options = *change.tcp}, now);
}

Status ConnectionService::reject(RequestHandle request, base::ByteView private_data,
                                 base::Now now) {
  auto connection = requests_.find(request);
  if (!connection) return tl::unexpected(connection.error());
  auto fits = rules_.check_private_data(private_data, (*connection)->private_data_max(),
                                        (*connection)->agreed().revision);
  if (!fits) return fits;
  (*connection)->reject(private_data, now);
  requests_.over(**connection);
  return {};
}

Status ConnectionService::set_trace(QueuePair& qp, base::TraceSink* sink) {
  Connection* connection = connections_.get(qp.connection());
  if (sink == nullptr) {
    if (connection != nullptr) connection->set_trace(nullptr);
    return {};
  }
  if (connection == nullptr || !connection->has_stream()) {
    return fail(ErrorCode::WrongState,
                "the queue pair is not connected: trace it after Established");
  }
  connection->set_trace(sink);
  return {};
}

void ConnectionService::connection_started(Connection& connection,
                                           std::vector<uint8_t> private_data, base::Now now) {
  ++counters_.connections_established;
  connections_.established(connection, now);
  if (connection.queue_pair()->orphaned()) return;
  auto event = about<event::Established>(connection);
  event.private_data = std::move(private_data);
  event.facts = connection.agreed();
  events_.emit(std::move(event));
  doorbells_.ring(connection.queue_pair()->doorbell());
}

void ConnectionService::log_start_failure(const Connection& connection, framing::StartFailure why,
                                          base::Now now) {
  using framing::StartFailure;
  // In these cases nothing that came was wrong, and the application that asked for the connection
  // learns the reason from an event.
  const bool silent = why == StartFailure::StreamEnded || why == StartFailure::NoReply ||
                      why == StartFailure::ResetBeforeReply || why == StartFailure::Refused ||
                      why == StartFailure::Unreachable || why == StartFailure::Unanswered ||
                      why == StartFailure::RejectedByPeer ||
                      (why == StartFailure::TimedOut && !connection.is_responder());
  if (silent || (connection.is_responder() && !inbound_logged_.allow(now))) return;
  base::log(base::LogLevel::Warning, "rnic", [&] {
    return config_.name + ": start-up " + (connection.is_responder() ? "from " : "towards ") +
           to_string(connection.remote()) + " failed: " + framing::to_string(why);
  });
}

void ConnectionService::start_failed(Connection& connection, ConnectionState before,
                                     framing::StartFailure why, base::ByteView private_data,
                                     base::Now now) {
  connections_.linger(connection);
  if (why == framing::StartFailure::RejectedLocally) return;  // the application's own answer
  if (Redials::wants(connection, why)) {
    QueuePair& qp = *connection.queue_pair();
    connection.unbind();
    redials_.add(qp, connection.take_redial());
    return;
  }
  connection.set_outcome_reported();
  ++counters_.connects_failed;
  log_start_failure(connection, why, now);
  if (before == ConnectionState::Requested) requests_.over(connection);
  if (connection.queue_pair() != nullptr && connection.queue_pair()->orphaned()) return;
  tell_start_failed(connection, before, why, private_data);
}

void ConnectionService::tell_start_failed(Connection& connection, ConnectionState before,
                                          framing::StartFailure why, base::ByteView private_data) {
  const char* text =
      connection.evicted_for() != nullptr ? connection.evicted_for() : framing::to_string(why);
  if (why == framing::StartFailure::RejectedByPeer) {
    auto event = about<event::Rejected>(connection, text);
    // Not every application needs the private data: the event comes without them rather than not at
    // all.
    const bool kept =
        base::attempt([&] { event.private_data.assign(private_data.begin(), private_data.end()); });
    if (!kept) ++counters_.starved_texts;
    event.facts = connection.agreed();
    return events_.emit(std::move(event));
  }
  if (!connection.is_responder()) {
    return events_.emit(ending<event::ConnectFailed>(connection, why, text));
  }
  const bool unsolicited = connection.queue_pair() == nullptr;
  // The application has rejected the request, and is done with it.
  if (before == ConnectionState::Answered && unsolicited) return;
  Event told;
  if (before == ConnectionState::Connecting) {
    auto event = ending<event::RequestFailed>(connection, why, text);
    name_listener(connection, event);
    told = std::move(event);
  } else {
    auto event = ending<event::RequestWithdrawn>(connection, why, text);
    name_listener(connection, event);
    event.request = connection.request();
    told = std::move(event);
  }
  // Events of peers that nobody has asked for must not push out those that the application waits
  // for.
  unsolicited ? void(events_.emit_unsolicited(std::move(told))) : events_.emit(std::move(told));
}

void ConnectionService::connection_ended(Connection& connection) {
  connection.cancel_start(start_timers_);
  control_.end(connection);
  connections_.ended(connection);
}

void ConnectionService::left_mpa(const Connection& connection, const QueuePair& qp) {
  if (qp.orphaned()) return;
  events_.emit(disconnected(qp, connection.local(), connection.remote(),
                            "the stream goes on without RDMA"));
}

void ConnectionService::first_fpdu_overdue(Connection& connection) {
  ++counters_.first_fpdus_overdue;
  if (connection.queue_pair() == nullptr || connection.queue_pair()->orphaned()) return;
  events_.emit(about<event::FirstFpduOverdue>(
      connection,
      "a request waits for the peer's first FPDU, which a responder has to have before it may "
      "send: let the peer send first, or connect peer to peer"));
}

void ConnectionService::set_start_timer(Connection& connection, base::Now deadline) {
  if (deadline == base::kNever) return connection.cancel_start(start_timers_);
  connection.arm_start(start_timers_, deadline);
}

void ConnectionService::on_timers(base::Now now) {
  connections_.on_timers(now);
  control_.on_timers(now);
  if (!start_timers_.due(now)) return;
  start_timers_.expire(now, [&](base::TimerNode& node) {
    auto& connection = *static_cast<Connection*>(node.owner);
    connection.on_timer(now);
    base::Now next = connection.next_deadline();
    // The session may have another deadline, as for a silent peer after the delay of the first
    // FPDU. Before TCP is established it has none, and the start-up's time-out begins again.
    if (next == base::kNever && connection.state() == ConnectionState::Connecting) {
      next = now + connection.start_timeout();
    }
    if (next != base::kNever) connection.arm_start(start_timers_, next);
  });
}

void ConnectionService::do_reap(base::Now now) {
  reject_unheard(now);
  connections_.reap([this](Connection& connection) { leaves(connection); });
  redials_.dial_all([&](QueuePair& qp, const Connection::Redial& redial) {
    return dial(qp, redial.remote, redial.private_data, redial.options, llp::PortClaim::None, true,
                now);
  });
}

void ConnectionService::leaves(Connection& connection) {
  QueuePair* qp = connection.queue_pair();
  if (qp == nullptr) return;
  qp->end_connection();
  std::erase_if(orphans_, [qp](const auto& orphan) { return orphan.get() == qp; });
}

void ConnectionService::orphan(std::unique_ptr<QueuePair> qp) {
  Connection* connection = connections_.get(qp->connection());
  if (connection == nullptr) return;
  // The endpoint has to outlive the session's last call; its events reach nobody from here on.
  qp->orphan();
  orphans_.push_back(std::move(qp));
  connection->leave();
}

void ConnectionService::abort_all() {
  connections_.for_each([](Connection& connection) { connection.abort(); });
}

std::vector<ConnectionSummary> ConnectionService::all(base::Now now) {
  const ConnectionReport report(*transport_, own_, now);
  std::vector<ConnectionSummary> found;
  found.reserve(connections_.live());
  connections_.for_each([&](const Connection& connection) {
    if (connection.has_stream()) found.push_back(report.summary(connection));
  });
  return found;
}

Status ConnectionService::abort(const ConnectionId& id) {
  const base::Handle handle{id.index, id.generation};
  const Connection* connection = connections_.get(handle);
  if (connection == nullptr || !connection->has_stream()) {
    return fail(ErrorCode::NotFound,
                "abort: there is no such connection: it has ended, or never was; use one of "
                "Device::connections()");
  }
  ++counters_.connections_aborted;
  if (connection->evicted_for() == nullptr) connections_.evict(handle, kAborted);
  return {};
}

void ConnectionService::last_receive_done(QueuePair& qp) {
  event::LastReceiveDone event;
  event.qp = qp.number();
  event.context = qp.context();
  event.srq = qp.spec().srq->number();
  event.srq_context = qp.spec().srq->context();
  if (const Connection* connection = connections_.get(qp.connection()); connection != nullptr) {
    event.local = connection->local();
    event.remote = connection->remote();
  }
  events_.emit(std::move(event));
}

void ConnectionService::first_fpdu_awaited(QueuePair& qp, base::Now now) {
  Connection* running = connections_.get(qp.connection());
  if (running != nullptr) running->await_first_fpdu(now);
}

void ConnectionService::rtr_sent(QueuePair& qp, base::Now now) {
  Connection* running = connections_.get(qp.connection());
  if (running != nullptr) running->complete(now);
}

void ConnectionService::endpoint_event(QueuePair& qp, Event event, base::Now now) {
  Connection* running = connections_.get(qp.connection());
  event::Common& said = event::common(event);
  if (const auto* gone = std::get_if<event::Disconnected>(&event)) {
    // This text is short enough to need no allocation.
    if (said.detail.empty()) said.detail = to_string(gone->end);
    // The start-up had agreed, but the stream ended before the RTR: this is the outcome of the
    // attempt, and Disconnected follows it.
    if (running != nullptr && running->state() == ConnectionState::Running &&
        !running->outcome_reported()) {
      start_failed(*running, ConnectionState::Running, framing::StartFailure::StreamEnded, {}, now);
    }
    if (running != nullptr && running->evicted_for() != nullptr) {
      said.detail = base::worded([&] { return running->evicted_for(); });
    }
  }
  said.qp = qp.number();
  said.context = qp.context();
  if (const Connection* connection = connections_.get(qp.connection()); connection != nullptr) {
    said.local = connection->local();
    said.remote = connection->remote();
  }
  const Fault* fault = event::fault(event);
  if (fault != nullptr && fault->failed() && qp.tell_fault()) {
    base::log(base::LogLevel::Warning, "rnic", [&] {
      return config_.name + " qp " + std::to_string(qp.number()) + ": " + said.detail;
    });
  }
  events_.emit(std::move(event));
}

/// The queue is in error: each of its queue pairs may miss a completion, so all of them end. The
/// queue pairs of other queues go on (RFC 5042 s.6.4.6).
void ConnectionService::completion_overrun(QueuePair& qp, CompletionQueue& cq) {
  ++counters_.completion_overruns;
  if (!cq.set_overrun()) return;
  event::CompletionOverrun event;
  event.qp = qp.number();
  event.context = qp.context();
  event.cq = cq.number();
  event.cq_context = cq.context();
  event.detail = base::worded([&] {
    return "a completion was lost because completion queue " + std::to_string(cq.number()) +
           " was full, and the connections that complete there are ended: make it as deep as the "
           "work outstanding on it, or poll it more often";
  });
  events_.emit(std::move(event));
  resources_.for_each_qp([&](QueuePair* each) {
    if (each->spec().send_cq != &cq && each->spec().receive_cq != &cq) return;
    Connection* connection = connections_.get(each->connection());
    if (connection != nullptr) connection->abort();
  });
}

}  // namespace rnic::device

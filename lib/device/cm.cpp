// Device: connection management. Requests, outcomes, disconnects.

#include <algorithm>

#include "base/log.hpp"
#include "base/starved.hpp"
#include "device/device.hpp"

namespace rnic::device {

using base::fail;

namespace {

Status check_private_data(base::ByteView private_data, size_t most, uint8_t revision) {
  if (private_data.size() <= most) return {};
  std::string message = "private data of " + std::to_string(private_data.size()) +
                        " octets: at most " + std::to_string(most) + " with MPA revision " +
                        std::to_string(revision);
  if (revision == 2) message += "; revision 1 carries 512";
  return fail(ErrorCode::InvalidArgument, std::move(message));
}

uint16_t reads_of(std::optional<uint32_t> option, uint32_t own) {
  if (option == kReadsByApplication) return kReadsByApplication;
  return static_cast<uint16_t>(std::min<uint32_t>(option.value_or(own), kReadsByApplication - 1u));
}

}  // namespace

framing::StartWish make_wish(const ConnectOptions& options, const mpa::Config& config,
                             const QueuePairSpec& spec) {
  framing::StartWish wish;
  wish.revision = options.revision.value_or(config.revision);
  wish.exchange_reads = options.exchange_reads.value_or(config.exchange_reads);
  wish.peer_to_peer = options.peer_to_peer.value_or(config.peer_to_peer);
  wish.ird = reads_of(options.ird, spec.ird);
  wish.ord = reads_of(options.ord, spec.ord);
  wish.ord_required = static_cast<uint16_t>(std::min<uint32_t>(options.ord_required, 0x3ffe));
  return wish;
}

// MPAA-6-05, MPA-A.2-01: a sender may pack and may wait, by connection.
void Device::choose_segments(llp::Stream& stream, const SegmentChoice& choice) {
  if (!own_ || choice == SegmentChoice{}) return;  // check_options() has said so
  tcp::ConnectionOptions options = own_->stack.options(stream);
  options.pack_records = choice.packing.value_or(options.pack_records);
  options.nagle = choice.nagle.value_or(options.nagle);
  RNIC_CHECK(own_->stack.set_options(stream, options, last_now_).has_value());
}

Status Device::listen(const Endpoint& local, std::optional<Framing> framing) {
  if (own_ && !local.address.is_unspecified() && !own_->interface.is_ours(local.address)) {
    return fail(ErrorCode::InvalidArgument,
                "listen: " + to_string(local.address) + " is no address of this device");
  }
  auto status = check_framing(framing.value_or(config_.framing));
  // The entry has its memory before the transport listens, and is put in its place without more.
  std::map<Endpoint, Framing> own;
  if (framing) own.emplace(local, *framing);
  if (status) status = transport_->listen(local, acceptor_);
  if (status) listen_framing_.merge(own);
  return status;
}

Status Device::check_framing(Framing framing) const {
  if (framing > Framing::Tuf) {
    return fail(ErrorCode::InvalidArgument, "a number without a name for framing: Mpa or Tuf");
  }
  if (framing != Framing::Tuf || own_ || config_.tuf.markers_receive) return {};
  return fail(ErrorCode::Unsupported,
              "over sockets of the system, which show no segments, ULP framing has marker mode "
              "only: set tuf.markers = true");
}

Status Device::unlisten(const Endpoint& local) {
  auto status = transport_->unlisten(local);
  if (status) listen_framing_.erase(local);
  return status;
}

/// \param local of a connection: a listener of that address goes before one of all.
Framing Device::framing_of_listener(const Endpoint& local) const {
  for (const Endpoint& own : {local, Endpoint{{}, local.port}}) {
    const auto found = listen_framing_.find(own);
    if (found != listen_framing_.end()) return found->second;
  }
  return config_.framing;
}

Status Device::check_unconnected(const QueuePair& qp) const {
  if (!qp.used) return {};
  return fail(ErrorCode::WrongState,
              "the queue pair has had its connection: create a new queue pair for another one");
}

// RFC 9293 MUST-44: the route to the peer decides which of our addresses speaks to it.
Result<Endpoint> Device::local_towards(const Endpoint& remote) const {
  if (!own_) return Endpoint{};  // the transport chooses
  if (own_->interface.is_ours(remote.address)) {
    return fail(ErrorCode::InvalidArgument,
                "connect: " + to_string(remote.address) +
                    " is this device's own address, which it does not reach over its port: give "
                    "the peer's, or this device another one (device." +
                    config_.name + ".address)");
  }
  const IpAddress address = own_->interface.source_for(remote.address);
  if (address.is_unspecified()) {
    return fail(ErrorCode::Unreachable, "connect: no route to " + to_string(remote) +
                                            "; configure a gateway, or an address of its family");
  }
  return Endpoint{address, 0};
}

Status Device::check_options(const QueuePair& qp, const ConnectOptions& options) const {
  if (options.revision.value_or(0) > 2) {
    return fail(ErrorCode::InvalidArgument, "MPA has the revisions 0, 1 and 2");
  }
  const auto fits = [](std::optional<uint32_t> wanted, uint32_t own) {
    return !wanted || *wanted <= own || *wanted == kReadsByApplication;
  };
  if (!fits(options.ird, qp.spec().ird) || !fits(options.ord, qp.spec().ord)) {
    return fail(ErrorCode::InvalidArgument,
                "IRD or ORD of the connection is above the queue pair's: create it with more");
  }
  if ((options.packing || options.nagle) && !own_) {
    return fail(ErrorCode::InvalidArgument,
                "packing and nagle are the choice of a device with a port of its own; the system's "
                "TCP makes its segments by itself");
  }
  if (options.framing.value_or(Framing::Mpa) == Framing::Tuf) {
    if (!options.revision) return {};  // either side may send first: Go is the RTR
    return fail(ErrorCode::InvalidArgument,
                "ULP framing has no MPA revision: leave the revision out, or connect over MPA");
  }
  const bool enhanced = options.revision.value_or(config_.mpa.revision) == 2;
  if (options.peer_to_peer.value_or(config_.mpa.peer_to_peer) && !enhanced) {
    return fail(ErrorCode::InvalidArgument,
                "an RTR (peer to peer) needs MPA revision 2: set mpa.revision = 2");
  }
  return {};
}

Status Device::connect(QueuePair& qp, const Endpoint& remote, base::ByteView private_data,
                       base::Now now, const ConnectOptions& options) {
  if (auto status = check_unconnected(qp); !status) return status;
  ConnectOptions resolved = options;
  resolved.framing = options.framing.value_or(config_.framing);
  if (auto status = check_framing(*resolved.framing); !status) return status;
  if (auto status = check_options(qp, resolved); !status) return status;
  // Before somebody gives way for it.
  if (auto local = local_towards(remote); !local) return tl::unexpected(local.error());
  qp.segments = {options.packing, options.nagle};
  if (resolved.framing == Framing::Tuf) {
    return dial_framed(qp, remote, private_data, options, now);
  }
  return dial(qp, remote, private_data, make_wish(options, config_.mpa, qp.spec()), false, now);
}

Status Device::check_request(base::ByteView private_data, const framing::StartWish& wish) const {
  const mpa::StartPlan plan = mpa::plan_request(config_.mpa, wish);
  return check_private_data(private_data, mpa::private_data_max(plan), plan.header.revision);
}

Status Device::dial(QueuePair& qp, const Endpoint& remote, base::ByteView private_data,
                    const framing::StartWish& wish, bool again, base::Now now) {
  if (auto status = check_request(private_data, wish); !status) return status;
  // RFC 6581 s.10: the peer-to-peer model has no equivalent in revision 1.
  const bool newest = mpa::plan_request(config_.mpa, wish).header.revision == 2;
  std::unique_ptr<Connection::Redial> redial;
  if (newest && !again && config_.mpa.redial && !wish.peer_to_peer) {
    redial = std::make_unique<Connection::Redial>(
        Connection::Redial{qp.number(), remote, {private_data.begin(), private_data.end()}, wish});
    redial->wish.revision = 1;
  }
  base::Handle handle;
  if (find_place()) {
    handle = connections_.emplace(*this, framing::Role::Initiator, config_.mpa, private_data, wish);
  }
  const auto connection = start(handle, qp, remote, now);
  if (!connection) return tl::unexpected(connection.error());
  (*connection)->redial = std::move(redial);
  return {};
}

Status Device::dial_framed(QueuePair& qp, const Endpoint& remote, base::ByteView private_data,
                           const ConnectOptions& options, base::Now now) {
  if (private_data.size() > wire::kTufPrivateDataMax) {
    return fail(ErrorCode::InvalidArgument, "private data of " +
                                                std::to_string(private_data.size()) +
                                                " octets: at most 512 with ULP framing");
  }
  framing::StartWish wish = make_wish(options, config_.mpa, qp.spec());
  wish.exchange_reads = options.exchange_reads.value_or(true);
  base::Handle handle;
  if (find_place()) {
    handle = connections_.emplace(*this, framing::Role::Initiator, config_.tuf, private_data, wish);
  }
  const auto connection = start(handle, qp, remote, now);
  if (!connection) return tl::unexpected(connection.error());
  return {};
}

/// TCP's part of an active connect. \param handle the connection's place, or none
Result<Connection*> Device::start(base::Handle handle, QueuePair& qp, const Endpoint& remote,
                                  base::Now now) {
  Connection* connection = connections_.get(handle);
  if (connection == nullptr) return tl::unexpected(no_connection_left().error());
  base::Slab<Connection>::Tentative place(connections_, handle);
  connection->handle = handle;
  connection->remote = remote;
  const auto local = local_towards(remote);
  if (!local) return tl::unexpected(local.error());
  auto stream = transport_->connect(*local, remote, connection->session(), now);
  if (!stream) return tl::unexpected(stream.error());
  place.keep();
  connection->stream = *stream;
  connection->local = (*stream)->local();
  // The whole start-up counts, the TCP handshake included: a peer that says nothing ends here.
  start_timers_.arm(connection->start_timer, now + connection->start_timeout());
  connection->session().attach(**stream);
  connection->bind(qp);
  return connection;
}

Status Device::no_connection_left() const {
  return fail(ErrorCode::ResourceExhausted,
              "no connection left: raise limits.max_connections (now " +
                  std::to_string(config_.limits.max_connections) + ")");
}

bool Device::wants_redial(const Connection& connection, framing::StartFailure why) const {
  return connection.redial != nullptr &&
         (why == framing::StartFailure::NoReply || why == framing::StartFailure::ResetBeforeReply ||
          why == framing::StartFailure::NotEnhanced);
}

void Device::redial() {
  while (!redials_.empty()) {
    const std::unique_ptr<Connection::Redial> redial = std::move(redials_.back());
    redials_.pop_back();
    QueuePair* qp = redial->qp < qps_.size() ? qps_[redial->qp].get() : nullptr;
    // Destroyed meanwhile, and perhaps made again.
    if (qp == nullptr || !qp->awaits_redial) continue;
    qp->awaits_redial = false;
    ++counters_.connects_redialed;
    Status status;
    const bool tried = base::attempt([&] {
      status = dial(*qp, redial->remote, redial->private_data, redial->wish, true, last_now_);
    });
    if (!tried) status = fail(ErrorCode::ResourceExhausted, base::kOutOfMemory);
    if (status) continue;
    ++counters_.connects_failed;
    event::ConnectFailed event;
    event.qp = qp->number();
    event.remote = redial->remote;
    event.detail = std::move(status.error().message);
    emit(std::move(event));
    qp->endpoint().abort();
  }
}

void Device::give_up(Connection& connection) {
  ++counters_.starved_connections;
  base::log(base::LogLevel::Warning, "rnic", [&] {
    return config_.name + ": the connection with " + to_string(connection.remote) +
           " was given up: out of memory";
  });
  if (connection.stream != nullptr) connection.stream->abort();
}

namespace {

/// An event with what it says of its connection. \param why nullptr: nothing is to be said
template <typename Kind>
Kind about(Connection& connection, const char* why = nullptr) {
  Kind event;
  if (connection.queue_pair() != nullptr) event.qp = connection.queue_pair()->number();
  event.local = connection.local;
  event.remote = connection.remote;
  if (why != nullptr) event.detail = base::worded([&] { return why; });
  return event;
}

}  // namespace

void Device::request_received(Connection& connection, base::ByteView private_data) {
  ++counters_.connect_requests;
  auto event = about<event::ConnectRequest>(connection);
  event.request = connection.request();
  // The application decides by them.
  const bool kept =
      base::attempt([&] { event.private_data.assign(private_data.begin(), private_data.end()); });
  if (!kept) return give_up(connection);
  event.facts = connection.agreed();
  // From a callback of its session it cannot be answered yet.
  if (!emit_of_stranger(std::move(event))) unheard_.push_back(connection.handle);
}

/// An application that does not read its events answers nobody: the place goes to others.
void Device::refuse_unheard() {
  for (const base::Handle handle : unheard_) {
    if (!reject({handle.index, handle.generation}, {}, last_now_)) continue;  // gone meanwhile
    ++counters_.requests_unheard;
    if (!strangers_logged_.allow(last_now_)) continue;
    base::log(base::LogLevel::Warning, "rnic", [&] {
      return config_.name +
             ": requests are rejected because half of the event queue is full: "
             "read the events, or raise limits.max_events";
    });
  }
  unheard_.clear();
}

Result<Connection*> Device::find_request(RequestHandle request) {
  Connection* connection = connections_.get({request.index, request.generation});
  if (connection == nullptr || connection->state() != ConnectionState::Requested) {
    return fail(ErrorCode::NotFound, "the connection request is gone or was answered already");
  }
  return connection;
}

Status Device::accept(RequestHandle request, QueuePair& qp, base::ByteView private_data,
                      base::Now now, const ConnectOptions& options) {
  if (auto status = check_unconnected(qp); !status) return status;
  if (auto status = check_options(qp, {.ird = options.ird,
                                       .ord = options.ord,
                                       .packing = options.packing,
                                       .nagle = options.nagle});
      !status) {
    return status;
  }
  auto connection = find_request(request);
  if (!connection) return tl::unexpected(connection.error());
  auto fits = check_private_data(private_data, (*connection)->session().private_data_max(),
                                 (*connection)->agreed().revision);
  if (!fits) return fits;
  qp.segments = {options.packing, options.nagle};
  (*connection)->accept(qp, private_data, make_wish(options, config_.mpa, qp.spec()), now);
  --pending_requests_;
  return {};
}

Status Device::reject(RequestHandle request, base::ByteView private_data, base::Now now) {
  auto connection = find_request(request);
  if (!connection) return tl::unexpected(connection.error());
  auto fits = check_private_data(private_data, (*connection)->session().private_data_max(),
                                 (*connection)->agreed().revision);
  if (!fits) return fits;
  (*connection)->reject(private_data, now);
  --pending_requests_;
  return {};
}

Status Device::disconnect(QueuePair& qp, base::Now now) {
  Connection* connection = connections_.get(qp.connection);
  if (connection == nullptr || connection->stream == nullptr) {
    return fail(ErrorCode::WrongState, "the queue pair is not connected");
  }
  if (connection->state() == ConnectionState::Running) {
    qp.serve();
    qp.endpoint().disconnect(now);
  } else {
    connection->stream->abort();
  }
  return {};
}

Status Device::set_trace(QueuePair& qp, base::TraceSink* sink) {
  Connection* connection = connections_.get(qp.connection);
  if (connection == nullptr || connection->stream == nullptr) {
    return fail(ErrorCode::WrongState,
                "the queue pair is not connected: trace it after Established");
  }
  connection->stream->set_trace(sink);
  return {};
}

void Device::end_trace(QueuePair& qp) {
  Connection* connection = connections_.get(qp.connection);
  if (connection != nullptr && connection->stream != nullptr) {
    connection->stream->set_trace(nullptr);
  }
}

void Device::connection_started(Connection& connection, std::vector<uint8_t> private_data) {
  ++counters_.connections_established;
  watch_silence(connection);
  if (connection.queue_pair()->orphaned()) return;
  auto event = about<event::Established>(connection);
  event.private_data = std::move(private_data);
  event.facts = connection.agreed();
  emit(std::move(event));
  ring_doorbell(connection.queue_pair()->number());
}

namespace {

/// MPA's own codes (RFC 5044 s.8, RFC 6581 s.8) of what spoils a start-up.
std::optional<Fault> fault_of(framing::StartFailure why) {
  llp::FramingError error = llp::FramingError::None;
  switch (why) {
    case framing::StartFailure::BadKey:
    case framing::StartFailure::BothInitiators:
    case framing::StartFailure::BadRevision:
    case framing::StartFailure::BadLength:
    case framing::StartFailure::NotEnhanced:
    case framing::StartFailure::NotTuf:
    case framing::StartFailure::UnexpectedData: error = llp::FramingError::BadStartFrame; break;
    case framing::StartFailure::OutOfMemory:
    case framing::StartFailure::LocalError: error = llp::FramingError::LocalCatastrophic; break;
    case framing::StartFailure::InsufficientReads:
      error = llp::FramingError::InsufficientIrd;
      break;
    case framing::StartFailure::NoMatchingRtr: error = llp::FramingError::NoMatchingRtr; break;
    case framing::StartFailure::TimedOut:
    case framing::StartFailure::StreamEnded:
    case framing::StartFailure::NoReply:
    case framing::StartFailure::ResetBeforeReply:
    case framing::StartFailure::RtrMissing:
    case framing::StartFailure::Refused:
    case framing::StartFailure::Unreachable:
    case framing::StartFailure::Unanswered: error = llp::FramingError::Closed; break;
    default: return std::nullopt;
  }
  return Fault{FaultLayer::Llp, 0, static_cast<uint8_t>(error), "MPA-8-01"};
}

StreamEnd end_of(framing::StartFailure why) {
  switch (why) {
    case framing::StartFailure::Refused: return StreamEnd::Refused;
    case framing::StartFailure::Unreachable: return StreamEnd::Unreachable;
    case framing::StartFailure::Unanswered:
    case framing::StartFailure::TimedOut:
    case framing::StartFailure::RtrMissing: return StreamEnd::TimedOut;
    default: return StreamEnd::Closed;
  }
}

template <typename Kind>
Kind ending(Connection& connection, framing::StartFailure why, const char* text) {
  auto event = about<Kind>(connection, text);
  event.fault = fault_of(why);
  event.end = end_of(why);
  return event;
}

}  // namespace

void Device::log_start_failure(const Connection& connection, framing::StartFailure why) {
  using framing::StartFailure;
  // Nothing came that was at fault; who asked for the connection is told by its event.
  const bool silent = why == StartFailure::StreamEnded || why == StartFailure::NoReply ||
                      why == StartFailure::ResetBeforeReply || why == StartFailure::Refused ||
                      why == StartFailure::Unreachable || why == StartFailure::Unanswered ||
                      why == StartFailure::RejectedByPeer ||
                      (why == StartFailure::TimedOut && !connection.is_responder());
  if (silent || (connection.is_responder() && !strangers_logged_.allow(last_now_))) return;
  base::log(base::LogLevel::Warning, "rnic", [&] {
    return config_.name + ": start-up " + (connection.is_responder() ? "from " : "towards ") +
           to_string(connection.remote) + " failed: " + framing::to_string(why);
  });
}

void Device::start_failed(Connection& connection, ConnectionState before, framing::StartFailure why,
                          base::ByteView private_data) {
  linger(connection);
  if (why == framing::StartFailure::RejectedLocally) return;  // the application's own answer
  if (wants_redial(connection, why)) {
    connection.queue_pair()->awaits_redial = true;
    connection.unbind();
    redials_.push_back(std::move(connection.redial));
    return;
  }
  connection.set_outcome_told();
  ++counters_.connects_failed;
  log_start_failure(connection, why);
  if (before == ConnectionState::Requested) --pending_requests_;
  if (connection.queue_pair() != nullptr && connection.queue_pair()->orphaned()) return;
  tell_start_failed(connection, before, why, private_data);
}

void Device::tell_start_failed(Connection& connection, ConnectionState before,
                               framing::StartFailure why, base::ByteView private_data) {
  const char* text = connection.yields != nullptr ? connection.yields : framing::to_string(why);
  if (why == framing::StartFailure::RejectedByPeer) {
    auto event = about<event::Rejected>(connection, text);
    // Not every reader needs them, so the event comes without them rather than not at all.
    const bool kept =
        base::attempt([&] { event.private_data.assign(private_data.begin(), private_data.end()); });
    if (!kept) ++counters_.starved_texts;
    event.facts = connection.agreed();
    return emit(std::move(event));
  }
  if (!connection.is_responder()) {
    return emit(ending<event::ConnectFailed>(connection, why, text));
  }
  const bool stranger = connection.queue_pair() == nullptr;
  // The application has done with it when it said no.
  if (before == ConnectionState::Answered && stranger) return;
  Event told;
  if (before == ConnectionState::Connecting) {
    told = ending<event::RequestFailed>(connection, why, text);
  } else {
    auto event = ending<event::RequestWithdrawn>(connection, why, text);
    event.request = connection.request();
    told = std::move(event);
  }
  // Strangers must not push out what the application waits for.
  stranger ? void(emit_of_stranger(std::move(told))) : emit(std::move(told));
}

void Device::connection_ended(Connection& connection) {
  stop_start_timer(connection);
  silence_timers_.cancel(connection.silence_timer);
  leave_seat(connection);
  if (connection.yields != nullptr) --yielding_;
  ended_.push_back(connection.handle);
}

void Device::reap() {
  if (own_) own_->reap_sockets();
  refuse_unheard();
  reap_ended();
  redial();
}

void Device::reap_ended() {
  for (const base::Handle handle : ended_) {
    Connection* connection = connections_.get(handle);
    if (connection == nullptr) continue;
    if (QueuePair* qp = connection->queue_pair(); qp != nullptr) {
      qp->connection = {};
      std::erase_if(orphans_, [qp](const auto& orphan) { return orphan.get() == qp; });
    }
    connections_.erase(handle);
  }
  ended_.clear();
}

namespace {

/// \param source not RtrSent, of which the application learns nothing
Event told_by(const rdmap::EndpointEvent& source) {
  const auto with = [&source](auto event) {
    event.detail = base::worded([&] { return source.detail; });
    return event;
  };
  switch (source.kind) {
    case rdmap::EventKind::TerminateSent:
      return with(event::TerminateSent{{}, source.fault.value_or(Fault{})});
    case rdmap::EventKind::TerminateReceived:
      return with(event::TerminateReceived{{}, source.fault.value_or(Fault{})});
    case rdmap::EventKind::Disconnected: {
      auto event = with(event::Disconnected{{{}, source.fault, source.end}});
      // Short enough to need no memory.
      if (event.detail.empty()) event.detail = to_string(source.end);
      return event;
    }
    case rdmap::EventKind::PeerClosed:
    case rdmap::EventKind::RtrSent: break;
  }
  return with(event::PeerClosed{});
}

}  // namespace

void Device::endpoint_event(QueuePair& qp, const rdmap::EndpointEvent& source, base::Now) {
  Connection* running = connections_.get(qp.connection);
  if (source.kind == rdmap::EventKind::RtrSent) {
    if (running != nullptr) running->complete();
    return;
  }
  // Agreed on, but gone before the RTR: this is the outcome, and Disconnected follows it.
  if (source.kind == rdmap::EventKind::Disconnected && running != nullptr &&
      running->state() == ConnectionState::Running && !running->outcome_told()) {
    start_failed(*running, ConnectionState::Running, framing::StartFailure::StreamEnded, {});
  }
  Event event = told_by(source);
  event::Common& said = common(event);
  said.qp = qp.number();
  if (source.kind == rdmap::EventKind::Disconnected && running != nullptr &&
      running->yields != nullptr) {
    said.detail = base::worded([&] { return running->yields; });
  }
  if (const Connection* connection = connections_.get(qp.connection); connection != nullptr) {
    said.local = connection->local;
    said.remote = connection->remote;
  }
  if (source.fault && source.fault->failed()) {
    base::log(base::LogLevel::Warning, "rnic", [&] {
      return config_.name + " qp " + std::to_string(qp.number()) + ": " + said.detail;
    });
  }
  emit(std::move(event));
}

}  // namespace rnic::device

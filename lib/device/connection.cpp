#include "device/connection.hpp"

#include <utility>

#include "base/check.hpp"
#include "base/log.hpp"
#include "base/starved.hpp"
#include "device/queue_pair.hpp"
#include "device/stream_socket.hpp"

namespace rnic::device {

namespace {

Rtr rtr_of(uint8_t kind) {
  switch (kind) {
    case wire::kMpaRtrSend: return Rtr::Send;
    case wire::kMpaRtrWrite: return Rtr::Write;
    case wire::kMpaRtrRead: return Rtr::Read;
    default: return Rtr::None;
  }
}

/// The time from a rejecting Reply to our FIN, unless the peer closes before. Linux siw reads the
/// Reply's private data only while the connection is open.
constexpr base::Duration kRejectLinger = std::chrono::milliseconds(100);

}  // namespace

FramingParts::FramingParts(const DeviceConfig& config)
    : hold(framing::make_hold_store(config.limits.hold_octets)),
      pack(tuf::make_pack_store(config.limits.max_packed)),
      tuf_keys({config.secret[0] ^ 0x7475662d6b657973, config.secret[1] ^ 0x6672616d65732121}) {}

Connection::Connection(ConnectionOwner& owner, FramingParts& parts, framing::Role role,
                       const mpa::Config& config, base::ByteView private_data,
                       const framing::StartOptions& start_options)
    : owner_(owner),
      role_(role),
      start_timeout_(config.start_timeout),
      first_fpdu_(config.rtr_timeout),
      session_(std::make_unique<mpa::Session>(config, role, *parts.hold, parts.mpa_counters, *this,
                                              private_data, start_options)) {
  mpa_session_ = static_cast<mpa::Session*>(session_.get());
  start_timer_.owner = drain_timer_.owner = this;
  silence_.set_owner(this);
}

Connection::Connection(ConnectionOwner& owner, FramingParts& parts, framing::Role role,
                       const tuf::Config& config, base::ByteView private_data,
                       const framing::StartOptions& start_options)
    : owner_(owner),
      role_(role),
      start_timeout_(config.start_timeout),
      session_(std::make_unique<tuf::Session>(config, role, parts.tuf_keys.next(), *parts.hold,
                                              *parts.pack, parts.tuf_counters, *this, private_data,
                                              this, start_options)) {
  start_timer_.owner = drain_timer_.owner = this;
  silence_.set_owner(this);
}

void Connection::set_state(ConnectionState next) {
  RNIC_CHECK(kConnectionTransitions.allows(state_, next));
  state_ = next;
}

void Connection::validate() const {
  session_->validate();
  seat_.validate();
  peer_place_.validate();
  RNIC_CHECK(qp_ == nullptr || qp_->connection() == handle());
}

Status Connection::open(llp::Transport& transport, const TcpOptions& options,
                        const Endpoint& local, const Endpoint& remote, base::Now now,
                        llp::PortClaim claim) {
  return opened(transport.connect(local, remote, *session_, now, claim, options), remote);
}

Status Connection::open(tcp::Stack& stack, const tcp::ConnectionOptions& options,
                        const Endpoint& local, const Endpoint& remote, base::Now now,
                        llp::PortClaim claim) {
  return opened(stack.connect(local, remote, *session_, options, now, claim), remote);
}

Status Connection::opened(const Result<llp::Stream*>& stream, const Endpoint& remote) {
  remote_ = remote;
  if (!stream) return tl::unexpected(stream.error());
  stream_ = *stream;
  local_ = stream_->local();
  session_->attach(*stream_);
  return {};
}

void Connection::take(llp::Stream& stream, const Endpoint& local, const Endpoint& remote,
                      const ListenerName& listener) {
  stream_ = &stream;
  listener_ = listener;
  local_ = local;
  remote_ = remote;
  session_->attach(stream);
}

void Connection::convert(StreamSocket& socket, base::ByteView last_message, base::Now now) {
  RNIC_CHECK(mpa_session_ != nullptr);
  take(*socket.stream(), socket.local(), socket.remote());
  socket_ = &socket;
  socket.convert_to(*mpa_session_, last_message, now);
}

void Connection::abort() {
  if (stream_ != nullptr) stream_->abort();
}

void Connection::leave() {
  if (stream_ != nullptr) stream_->leave();
}

void Connection::set_trace(base::TraceSink* sink) {
  if (stream_ != nullptr) stream_->set_trace(sink);
}

ReceivePaths Connection::received() const {
  const framing::ReceiverStats& stats = session_->receiver_stats();
  ReceivePaths paths;
  paths.arrived = session_->arrived();
  paths.placed_early = stats.placed_early;
  paths.held = stats.held;
  paths.held_now = session_->held();
  paths.dropped_damaged = stats.dropped_damaged;
  paths.dropped_suspected = stats.dropped_suspected;
  paths.dropped_no_room = stats.dropped_no_room;
  return paths;
}

void Connection::evict(const char* why) {
  leave_seat();
  evicted_for_ = why;
  abort();
}

bool Connection::has_moved() {
  const bool moved =
      silence_.look({session_->arrived(), qp_ == nullptr ? 0 : qp_->sends_completed()});
  return moved || (qp_ != nullptr && qp_->has_work());
}

void Connection::bind(QueuePair& qp, base::Now now) {
  RNIC_CHECK(qp_ == nullptr);
  qp_ = &qp;
  qp.begin_connection(handle_);
  qp.bind(*session_);
  session_->share_hold(qp.spec().hold_share);
  if (mpa_session_ != nullptr && stream_ != nullptr) {
    stream_->set_working_set(
        {{{mpa_session_->working_part(), qp.endpoint_part(), qp.send_queue_part()}}});
  }
  // What a system's TCP does not take of it is counted.
  if (stream_ != nullptr) static_cast<void>(owner_.choose_tcp(*stream_, qp.tcp_choice(), now));
}

void Connection::unbind() {
  set_trace(nullptr);  // it belongs to the queue pair, and the stream may outlive that
  if (stream_ != nullptr) stream_->set_working_set({});
  session_->unbind();
  session_->share_hold(nullptr);
  qp_ = nullptr;
}

void Connection::accept(QueuePair& qp, base::ByteView private_data,
                        const framing::StartOptions& start_options, base::Now now) {
  bind(qp, now);
  set_state(ConnectionState::Answered);
  try {
    session_->accept(private_data, now, start_options);
  } catch (...) {
    set_state(ConnectionState::Requested);
    unbind();
    qp.cancel_connection();
    throw;
  }
}

void Connection::reject(base::ByteView private_data, base::Now now) {
  set_state(ConnectionState::Answered);
  try {
    session_->reject(private_data, now);
  } catch (...) {
    set_state(ConnectionState::Requested);
    throw;
  }
}

void Connection::request_received(const framing::StartOffer& peer, base::ByteView private_data,
                                  base::Now now) {
  framing::note_reads(peer, agreed_);
  agreed_.revision = peer.revision;
  if (!owner_.admits_request(*this, now)) return;
  set_state(ConnectionState::Requested);
  owner_.request_received(*this, private_data);
}

void Connection::started(const framing::Negotiated& agreed, base::ByteView private_data,
                         base::Now now) {
  set_state(ConnectionState::Running);
  redial_.reset();  // no attempt follows one that has succeeded
  agreed_ = agreed;
  agreed_.fell_back = fell_back_;
  if (agreed.peer_to_peer && !is_responder()) agreed_.rtr = rtr_of(agreed.rtr_kinds);
  owner_.set_start_timer(*this, base::kNever);
  RNIC_CHECK(qp_ != nullptr);
  rdmap::Agreement agreement{.ird = agreed.ird, .ord = agreed.ord, .rtr_out = agreed_.rtr};
  agreement.send_rtr_in =
      agreed.peer_to_peer && is_responder() && agreed.rtr_kinds == wire::kMpaRtrSend;
  qp_->start(*session_, agreement);
  const bool kept =
      base::attempt([&] { private_data_.assign(private_data.begin(), private_data.end()); });
  if (!kept) return owner_.give_up(*this);
  // The deadline is the RTR's time-out, or the end of the delay of the first FPDU.
  owner_.set_start_timer(*this, session_->next_deadline());
  if (agreed.peer_to_peer) return;
  if (!session_->may_send()) qp_->watch_first_fpdu();
  complete(now);
}

void Connection::rtr_received(base::Now now) { complete(now); }

void Connection::complete(base::Now now) {
  if (outcome_reported_) return;
  outcome_reported_ = true;
  owner_.connection_started(*this, std::move(private_data_), now);
  private_data_ = {};
}

void Connection::start_failed(framing::StartFailure why, base::ByteView private_data,
                              base::Now now) {
  const ConnectionState before = state_;
  set_state(ConnectionState::Failed);
  agreed_ = session_->negotiated();
  agreed_.fell_back = fell_back_;
  owner_.set_start_timer(*this, base::kNever);
  // RFC 6581 s.8: the endpoint sends a Terminate about the failure.
  if (session_->full_operation() && before != ConnectionState::Running) {
    qp_->start(*session_, {});
  }
  owner_.start_failed(*this, before, why, private_data, now);
  if (session_->left() && stream_ != nullptr) leave_mpa(now);
}

/// RFC 5044 s.7.1.2: after a reject the TCP connection belongs to the ULP again, which is the
/// streaming socket that it was made from. Without a socket no ULP wants the stream and it is
/// closed; a responder lets the peer that it has rejected close first.
void Connection::leave_mpa(base::Now now) {
  if (socket_ == nullptr && is_responder()) {
    set_state(ConnectionState::Lingering);
    return owner_.set_start_timer(*this, now + kRejectLinger);
  }
  if (socket_ == nullptr) return stream_->close();
  if (QueuePair* qp = qp_; qp != nullptr) {
    unbind();
    qp->end_connection();
    qp->abort();
    owner_.left_mpa(*this, *qp);
  }
  socket_->stream_again(*mpa_session_, now);
}

void Connection::peer_left(base::Now) { stop_lingering(); }

void Connection::on_timer(base::Now now) {
  stop_lingering();
  if (first_fpdu_.is_over(now) && !session_->may_send()) owner_.first_fpdu_overdue(*this);
  session_->on_timer(now);
}

// RFC 5044 s.7.1.2 rule 4. An RTR, if one was agreed on, has a time-out of its own.
void Connection::await_first_fpdu(base::Now now) {
  if (state_ != ConnectionState::Running || session_->may_send()) return;
  owner_.set_start_timer(*this, first_fpdu_.begin(now));
}

void Connection::stop_lingering() {
  if (state_ != ConnectionState::Lingering) return;
  set_state(ConnectionState::Failed);
  owner_.set_start_timer(*this, base::kNever);
  if (stream_ != nullptr) stream_->close();
}

void Connection::middlebox_suspected(base::Now) {
  base::log(base::LogLevel::Warning, "tuf", [&] {
    return "something between " + to_string(local_) + " and " + to_string(remote_) +
           " resegments the stream: marker mode (tuf.align = false) costs less there";
  });
}

void Connection::stream_broken(framing::PduError error, base::Now) {
  base::log(base::LogLevel::Warning, "tuf", [&] {
    return "the framed stream from " + to_string(remote_) +
           " is broken: " + framing::to_string(error);
  });
}

void Connection::stream_ended(StreamEnd, base::Now) {
  set_state(ConnectionState::Ended);
  stream_ = nullptr;
  owner_.connection_ended(*this);
}

}  // namespace rnic::device

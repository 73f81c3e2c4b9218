/// \file
/// One connection being made or in use: the owner of a framing session and its start-up.
#pragma once

#include <cstdint>
#include <memory>
#include <utility>
#include <vector>

#include "base/slab.hpp"
#include "base/timer_wheel.hpp"
#include "device/config.hpp"
#include "device/connection_state.hpp"
#include "device/first_fpdu.hpp"
#include "device/listeners.hpp"
#include "device/silence.hpp"
#include "llp/admission.hpp"
#include "llp/admitted.hpp"
#include "llp/llp.hpp"
#include "mpa/mpa.hpp"
#include "rnic/connection.hpp"
#include "rnic/device_info.hpp"
#include "tcp/tcp.hpp"
#include "tuf/key_source.hpp"
#include "tuf/tuf.hpp"

namespace rnic::device {

class Connection;
class QueuePair;
struct QueuePairSpec;
class StreamSocket;
struct TcpChoice;

/// The parts that the sessions of a device share: memory for what cannot be placed yet, keys,
/// counters.
struct FramingParts {
  explicit FramingParts(const DeviceConfig& config);
  framing::HoldStorePtr hold;
  tuf::PackStorePtr pack;
  tuf::KeySource tuf_keys;
  mpa::Counters mpa_counters;
  tuf::Counters tuf_counters;
};

/// Learns of a connection's start-up and of its end.
class ConnectionOwner {
 public:
  /// The Request is whole and asks to wait for the application. \return false: too many requests
  /// wait already, and the connection was aborted
  virtual bool admits_request(Connection& connection, base::Now now) = 0;
  virtual void request_received(Connection& connection, base::ByteView private_data) = 0;
  virtual void connection_started(Connection& connection, std::vector<uint8_t> private_data,
                                  base::Now now) = 0;
  virtual void start_failed(Connection& connection, ConnectionState before,
                            framing::StartFailure why, base::ByteView private_data,
                            base::Now now) = 0;
  virtual void connection_ended(Connection& connection) = 0;
  /// A work request of the connection's queue pair has waited too long for the peer's first FPDU.
  virtual void first_fpdu_overdue(Connection& connection) = 0;
  /// The stream goes on without RDMA, and the queue pair, whose work was flushed, without it.
  virtual void left_mpa(const Connection& connection, const QueuePair& qp) = 0;
  /// There is no memory for the rest of the start-up: the connection is aborted.
  virtual void give_up(Connection& connection) = 0;
  /// The values are in their ranges. Unsupported: as llp::Transport::choose().
  virtual Status choose_tcp(llp::Stream& stream, const TcpChoice& choice, base::Now now) = 0;
  /// Sets the one timer of a start-up, of its RTR, or of a delay. \param deadline kNever: stops it
  virtual void set_start_timer(Connection& connection, base::Now deadline) = 0;

 protected:
  ~ConnectionOwner() = default;
};

class Connection final : public framing::StartEvents, public tuf::SessionEvents {
 public:
  /// Over MPA. \param owner, parts outlive it
  Connection(ConnectionOwner& owner, FramingParts& parts, framing::Role role,
             const mpa::Config& config, base::ByteView private_data,
             const framing::StartOptions& start_options = {});
  /// Over ULP framing.
  Connection(ConnectionOwner& owner, FramingParts& parts, framing::Role role,
             const tuf::Config& config, base::ByteView private_data,
             const framing::StartOptions& start_options = {});

  /// Tells the connection its own place in the device's slab. Called once, before anything else.
  void name(base::Handle handle) { handle_ = handle; }
  [[nodiscard]] base::Handle handle() const { return handle_; }

  // The stream comes from one of these.

  /// Connects over `transport`. \param local, claim as llp::Transport::connect() has them
  Status open(llp::Transport& transport, const TcpOptions& options, const Endpoint& local,
              const Endpoint& remote, base::Now now, llp::PortClaim claim);
  /// Connects over a stack of our own, with the options of the application.
  Status open(tcp::Stack& stack, const tcp::ConnectionOptions& options, const Endpoint& local,
              const Endpoint& remote, base::Now now, llp::PortClaim claim);
  /// Takes the stream of a peer that has connected. \param listener the one it has connected to
  void take(llp::Stream& stream, const Endpoint& local, const Endpoint& remote,
            const ListenerName& listener = {});
  /// Takes the stream of a socket that can_be_converted(): MPA begins behind `last_message`. Over
  /// MPA only.
  void convert(StreamSocket& socket, base::ByteView last_message, base::Now now);

  /// The user that the transport calls with the stream's events.
  [[nodiscard]] llp::StreamUser* stream_user() { return session_.get(); }
  [[nodiscard]] bool has_stream() const { return stream_ != nullptr; }
  /// nullptr: there is none, or it has ended.
  [[nodiscard]] const llp::Stream* stream() const { return stream_; }
  [[nodiscard]] const Endpoint& local() const { return local_; }
  [[nodiscard]] const Endpoint& remote() const { return remote_; }
  /// The listener that accepted the connection; none if it was opened or converted.
  [[nodiscard]] const ListenerName& listener() const { return listener_; }
  /// The connection was made from a streaming socket.
  [[nodiscard]] bool was_converted() const { return socket_ != nullptr; }
  /// Resets the stream if there is one.
  void abort();
  void leave();  ///< its queue pair goes (llp::Stream::leave())
  /// Sets the trace sink of the stream; nullptr ends a trace. Does nothing without a stream.
  void set_trace(base::TraceSink* sink);
  /// The connection has to give way to others: its stream is reset. \param why a literal, for the
  /// event that tells of the end
  void evict(const char* why);
  /// The reason given to evict(); nullptr: the connection was not evicted.
  [[nodiscard]] const char* evicted_for() const { return evicted_for_; }

  // Facts of the session.
  [[nodiscard]] size_t private_data_max() const { return session_->private_data_max(); }
  [[nodiscard]] uint64_t held_octets() const { return session_->held(); }
  [[nodiscard]] uint32_t mulpdu() const { return session_->mulpdu(); }
  [[nodiscard]] bool may_send() const { return session_->may_send(); }
  [[nodiscard]] ReceivePaths received() const;
  [[nodiscard]] base::Now next_deadline() const { return session_->next_deadline(); }

  // The one timer of a start-up, of its RTR, or of a delay.
  void arm_start(base::TimerWheel& wheel, base::Now at) { wheel.arm(start_timer_, at); }
  void cancel_start(base::TimerWheel& wheel) { wheel.cancel(start_timer_); }

  // Silence (limits.silence).

  /// \return whether octets have come or work has completed since the last call, or the queue pair
  /// has work to do
  bool has_moved();
  void set_silent_since(base::Now when) { silence_.set_since(when); }
  [[nodiscard]] base::Now silent_since() const { return silence_.since(); }
  void arm_silence(base::TimerWheel& wheel, base::Now at) { silence_.arm(wheel, at); }
  void cancel_silence(base::TimerWheel& wheel) { silence_.cancel(wheel); }

  // The timer of a drain: it limits how long the peer may take to close.
  void arm_drain(base::TimerWheel& wheel, base::Now at) { wheel.arm(drain_timer_, at); }
  void cancel_drain(base::TimerWheel& wheel) { wheel.cancel(drain_timer_); }
  /// When that is; kNever: there is no limit.
  [[nodiscard]] base::Now drained_by() const {
    return drain_timer_.armed() ? drain_timer_.deadline : base::kNever;
  }

  [[nodiscard]] ConnectionState state() const { return state_; }
  /// Checks the invariants of its session, and that it and its queue pair name each other.
  void validate() const;
  /// How long the whole start-up may take, from the configuration of its framing.
  [[nodiscard]] base::Duration start_timeout() const { return start_timeout_; }
  [[nodiscard]] bool is_responder() const { return role_ == framing::Role::Responder; }

  /// Binds the queue pair's endpoint to the session. Called before the start-up goes on.
  void bind(QueuePair& qp, base::Now now);
  [[nodiscard]] QueuePair* queue_pair() { return qp_; }
  [[nodiscard]] const QueuePair* queue_pair() const { return qp_; }

  /// Binds the queue pair and sends the Reply. When it throws nothing has happened.
  void accept(QueuePair& qp, base::ByteView private_data,
              const framing::StartOptions& start_options, base::Now now);
  /// Sends a rejecting Reply. When it throws nothing has happened.
  void reject(base::ByteView private_data, base::Now now);

  /// The start timer has fired.
  void on_timer(base::Now now);
  /// A request was posted and cannot be sent: the time that the peer has for its first FPDU begins.
  void await_first_fpdu(base::Now now);

  /// What both sides have agreed on, and what the peer has offered.
  [[nodiscard]] const framing::Negotiated& agreed() const { return agreed_; }
  /// The name that the application knows the connection by while it is a request.
  [[nodiscard]] RequestHandle request() const { return {handle_.index, handle_.generation}; }
  /// The application has got the event that says how the attempt went.
  [[nodiscard]] bool outcome_reported() const { return outcome_reported_; }
  void set_outcome_reported() { outcome_reported_ = true; }
  /// The connection is in full operation, and the RTR, where one was agreed on, was sent or has
  /// come.
  void complete(base::Now now);

  /// What an initiator keeps for a second attempt with revision 1 (RFC 6581 s.10).
  struct Redial {
    uint32_t qp = 0;
    Endpoint remote;
    std::vector<uint8_t> private_data;
    ConnectOptions options;
  };
  /// The connection is that second attempt.
  void set_fell_back() { fell_back_ = true; }
  void keep_redial(std::unique_ptr<Redial> redial) { redial_ = std::move(redial); }
  [[nodiscard]] bool has_redial() const { return redial_ != nullptr; }
  [[nodiscard]] std::unique_ptr<Redial> take_redial() { return std::move(redial_); }
  /// Gives the connection a place in a table whose members may have to give way. A connection has
  /// at most one such place.
  void take_seat(llp::Admission& table) {
    seat_.take(table, remote_.address, handle_);
  }
  void leave_seat() { seat_.leave(); }
  [[nodiscard]] bool has_seat() const { return seat_.is_taken(); }
  /// Has the connection count among those of its peer's address (limits.peer_connections).
  void count_for_peer(llp::Admission& peers) { peer_place_.take(peers, remote_.address, handle_); }
  void leave_peer() { peer_place_.leave(); }
  [[nodiscard]] bool counts_for_peer() const { return peer_place_.is_taken(); }
  /// Precondition: has_stream().
  Status choose_tcp(const TcpChoice& choice, base::Now now) {
    return owner_.choose_tcp(*stream_, choice, now);
  }
  /// Lets go of the queue pair, which another connection will serve.
  void unbind();

  // framing::StartEvents
  void request_received(const framing::StartOffer& peer, base::ByteView private_data,
                        base::Now now) override;
  void started(const framing::Negotiated& agreed, base::ByteView private_data,
               base::Now now) override;
  void start_failed(framing::StartFailure why, base::ByteView private_data, base::Now now) override;
  void rtr_received(base::Now now) override;
  void peer_left(base::Now now) override;
  void stream_ended(StreamEnd how, base::Now now) override;

  // tuf::SessionEvents
  void middlebox_suspected(base::Now now) override;
  void stream_broken(framing::PduError error, base::Now now) override;

 private:
  Status opened(const Result<llp::Stream*>& stream, const Endpoint& remote);
  void set_state(ConnectionState next);
  void leave_mpa(base::Now now);
  void stop_lingering();

  ConnectionOwner& owner_;
  base::Handle handle_;
  llp::Stream* stream_ = nullptr;  // until stream_ended()
  Endpoint local_;
  Endpoint remote_;
  StreamSocket* socket_ = nullptr;     // valid as stream_ is
  const char* evicted_for_ = nullptr;  // nullptr: it was not evicted
  base::TimerNode start_timer_;
  Silence silence_;
  base::TimerNode drain_timer_;    // when it is reset, whatever the peer does
  std::unique_ptr<Redial> redial_;  // until the attempt has succeeded
  llp::Admitted seat_;
  llp::Admitted peer_place_;
  framing::Role role_;
  base::Duration start_timeout_;
  FirstFpduTime first_fpdu_;
  ListenerName listener_;
  ConnectionState state_ = ConnectionState::Connecting;
  QueuePair* qp_ = nullptr;
  framing::Negotiated agreed_;
  std::vector<uint8_t> private_data_;  // of the Reply, until the connection is complete
  bool fell_back_ = false;
  // This is not part of the state: in Running the report waits for the RTR, and a failure that is
  // dialled again is never reported.
  bool outcome_reported_ = false;
  std::unique_ptr<framing::StartSession> session_;
  mpa::Session* mpa_session_ = nullptr;
};

}  // namespace rnic::device

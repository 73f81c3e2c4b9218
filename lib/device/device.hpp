/// \file
/// Layer `device`: one software RNIC. It glues a port with net and tcp, or another transport, and
/// mpa, ddp and rdmap together; it has queue pairs, completion queues, registered memory and
/// connection management, and runs them by one poll loop.
///
/// A Device belongs to one worker: everything but what is marked *application side* is called
/// there. It sees only port::Port, llp::Transport and `now`; the same loop runs over a NIC and in
/// the simulator.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/doorbell.hpp"
#include "base/fail.hpp"
#include "base/log.hpp"
#include "base/pressure_log.hpp"
#include "base/slab.hpp"
#include "base/spsc_ring.hpp"
#include "base/timer_wheel.hpp"
#include "device/completion_queue.hpp"
#include "device/config.hpp"
#include "device/connection.hpp"
#include "device/counters.hpp"
#include "device/port_stack.hpp"
#include "device/queue_pair.hpp"
#include "device/stream_socket.hpp"
#include "llp/admission.hpp"
#include "mem/stag_table.hpp"
#include "net/rate_limit.hpp"
#include "rnic/event.hpp"
#include "tcp/tcp.hpp"
#include "tuf/tuf.hpp"

namespace rnic::device {

/// One counter of the device, for listings.
struct CounterValue {
  std::string layer;
  base::CounterRow row;
};

class Device {
 public:
  /// \param port, reassembler outlive the device; without a reassembler fragments are dropped.
  Device(const DeviceConfig& config, port::Port& port, base::Now now,
         net::Reassembler* reassembler = nullptr);
  /// Without a port: connections come from `transport`, which outlives the device, and there are no
  /// streaming sockets. Of `config`, `net` and `tcp` mean nothing then.
  Device(const DeviceConfig& config, llp::Transport& transport, base::Now now);
  ~Device();
  Device(const Device&) = delete;
  Device& operator=(const Device&) = delete;

  // --- The loop (worker) ---

  /// One turn: receive a burst, answer doorbells, fire timers, send. \return frames and doorbells
  /// served; 0 means idle.
  uint32_t poll(base::Now now);
  /// When poll() has something to do although nothing arrives: timers, a decorator's held frames.
  [[nodiscard]] base::Now next_deadline() const;

  /// What the table of connections asks the machine for. \param most limits.max_connections
  [[nodiscard]] static uint64_t connection_octets_for(uint64_t most);

  // --- Resources (worker) ---

  Result<uint32_t> alloc_pd();
  Status free_pd(uint32_t pd);
  Result<mem::Stag> register_memory(const mem::RegionSpec& spec);
  /// Revokes. When it has returned the device neither reads nor writes one octet of that memory; a
  /// stream that has to retransmit octets of it later is aborted.
  Status deregister_memory(mem::Stag stag);
  Result<CompletionQueue*> create_cq(uint32_t depth);
  Status destroy_cq(CompletionQueue* cq);
  Result<QueuePair*> create_qp(const QueuePairSpec& spec);
  /// Aborts the connection if there is one. Completions not yet polled stay in the CQs.
  Status destroy_qp(QueuePair* qp);

  // --- Connections (worker) ---

  /// \param local an unspecified address: every address of the device, of either family
  /// \param framing instead of the device's, of everything that listens on this port
  Status listen(const Endpoint& local, std::optional<Framing> framing = {});
  Status unlisten(const Endpoint& local);
  Status listen(uint16_t port, std::optional<Framing> framing = {}) {
    return listen(Endpoint{IpAddress{}, port}, framing);
  }
  Status unlisten(uint16_t port) { return unlisten(Endpoint{IpAddress{}, port}); }
  /// Starts an active connection. The outcome is an event: Established, Rejected or ConnectFailed.
  Status connect(QueuePair& qp, const Endpoint& remote, base::ByteView private_data, base::Now now,
                 const ConnectOptions& options = {});
  /// Answers a ConnectRequest. With less Reads than options.ord_required it becomes a reject, and
  /// RequestWithdrawn follows.
  Status accept(RequestHandle request, QueuePair& qp, base::ByteView private_data, base::Now now,
                const ConnectOptions& options = {});
  Status reject(RequestHandle request, base::ByteView private_data, base::Now now);

  // Streaming connections become RDMA connections (RFC 5044 s.7.1.3 to 7.1.5): see
  // StreamSocket::can_be_lent(). When MPA is left by a reject the socket streams again.

  /// As connect(), behind what the socket has sent: the initiator.
  Status connect(QueuePair& qp, StreamSocket& socket, base::ByteView private_data, base::Now now,
                 const ConnectOptions& options = {});
  /// The responder: sends `last_message`, then the peer's Request is awaited: ConnectRequest.
  Status await_rdma(StreamSocket& socket, base::ByteView last_message, base::Now now);
  /// Graceful: what was posted is sent, then FIN. Disconnected follows.
  Status disconnect(QueuePair& qp, base::Now now);
  /// Traces the queue pair's connection; nullptr ends it. WrongState without a connection.
  Status set_trace(QueuePair& qp, base::TraceSink* sink);
  /// The sink is not called any more, connected or not.
  void end_trace(QueuePair& qp);

  // --- Plain and framed streams (worker; see socket_table.hpp). Unsupported without a port ---

  /// \param local an unspecified address: every address of the device
  Result<StreamListener*> listen_stream(const Endpoint& local, uint32_t backlog,
                                        const tcp::ConnectionOptions& options) {
    return listen_for<StreamKind>(local, backlog, options, {});
  }
  Result<FramedListener*> listen_framed(const Endpoint& local, uint32_t backlog,
                                        const tcp::ConnectionOptions& options,
                                        const FramedSetup& setup) {
    return listen_for<FramedKind>(local, backlog, options, setup);
  }
  /// Starts an active connection; the socket tells how it went.
  Result<StreamSocket*> connect_stream(const Endpoint& remote,
                                       const tcp::ConnectionOptions& options, base::Now now) {
    return open_socket<StreamKind>(remote, options, {}, now);
  }
  Result<FramedSocket*> connect_framed(const Endpoint& remote,
                                       const tcp::ConnectionOptions& options,
                                       const FramedSetup& setup, base::Now now) {
    return open_socket<FramedKind>(remote, options, setup, now);
  }
  /// What the config says for every connection.
  [[nodiscard]] tcp::ConnectionOptions default_options() const {
    return own_ ? own_->stack.default_options() : tcp::ConnectionOptions{};
  }
  // The same with what the config says for every connection.
  Result<StreamListener*> listen_stream(const Endpoint& local, uint32_t backlog) {
    return listen_stream(local, backlog, default_options());
  }
  Result<StreamSocket*> connect_stream(const Endpoint& remote, base::Now now) {
    return connect_stream(remote, default_options(), now);
  }
  // has_port() holds, as for every socket.
  [[nodiscard]] StreamTable& streams() { return own_->streams; }
  [[nodiscard]] FramedTable& framed() { return own_->framed; }

  // --- Application side ---

  /// Any thread. \param number QueuePair::number() or AppSocket::doorbell()
  void ring_doorbell(uint32_t number) { doorbells_.ring(number); }
  [[nodiscard]] bool doorbell_ringing() const { return doorbells_.ringing(); }
  /// One thread at a time. Nothing when there is none.
  std::optional<Event> poll_event() {
    std::optional<Event> event(std::in_place);
    if (!events_.pop(*event)) event.reset();
    return event;
  }

  // --- Facts ---

  [[nodiscard]] const DeviceConfig& config() const { return config_; }
  /// False: it stands on another transport.
  [[nodiscard]] bool has_port() const { return own_.has_value(); }
  /// has_port() holds.
  [[nodiscard]] port::Port& port() { return own_->port; }
  [[nodiscard]] std::vector<CounterValue> counters() const;
  /// Calls `visit(layer, row)` for each of them; needs no memory.
  void for_each_counter(
      const std::function<void(const char* layer, const base::CounterRow& row)>& visit) const;
  /// has_port() holds.
  [[nodiscard]] const tcp::Counters& tcp_counters() const { return own_->stack.counters(); }
  [[nodiscard]] mpa::Counters& mpa_counters() { return mpa_counters_; }
  [[nodiscard]] tuf::Counters& tuf_counters() { return tuf_counters_; }
  [[nodiscard]] rdmap::Counters& rdmap_counters() { return rdmap_counters_; }
  /// has_port() holds.
  [[nodiscard]] const net::Counters& net_counters() const { return own_->interface.counters(); }
  [[nodiscard]] const DeviceCounters& device_counters() const { return counters_; }
  [[nodiscard]] mem::StagTable& memory() { return memory_; }
  [[nodiscard]] framing::HoldStore& hold_store() { return *hold_; }
  [[nodiscard]] tuf::PackStore& pack_store() { return *pack_; }
  [[nodiscard]] tuf::KeySource& tuf_keys() { return tuf_keys_; }
  /// Octets of the queue pair's connection in hold space now: received, and not placed yet.
  [[nodiscard]] uint64_t held_octets(const QueuePair& qp);
  [[nodiscard]] uint32_t live_connections() const { return connections_.live(); }
  /// No connection, nothing queued, nothing held: everything was returned.
  [[nodiscard]] bool quiescent() const;

  /// poll() ended by an exception.
  void count_starved_turn() { ++counters_.starved_turns; }

  // --- Called by the parts of the device ---

  void completion_overrun(QueuePair& qp, CompletionQueue& cq);
  void endpoint_event(QueuePair& qp, const rdmap::EndpointEvent& event, base::Now now);
  /// The Request is whole: it may wait for the application. False: too many do, and it is let go.
  bool admits_request(Connection& connection);
  void request_received(Connection& connection, base::ByteView private_data);
  void connection_started(Connection& connection, std::vector<uint8_t> private_data);
  void start_failed(Connection& connection, ConnectionState before, framing::StartFailure why,
                    base::ByteView private_data);
  void connection_ended(Connection& connection);
  /// There is no memory for the rest of its start-up: it is aborted.
  void give_up(Connection& connection);
  void choose_segments(llp::Stream& stream, const SegmentChoice& choice);
  void stop_start_timer(Connection& connection) { start_timers_.cancel(connection.start_timer); }
  void start_start_timer(Connection& connection, base::Now deadline) {
    if (deadline != base::kNever) start_timers_.arm(connection.start_timer, deadline);
  }

 private:
  static constexpr uint32_t kBurst = 32;
  static constexpr uint32_t kBurstsPerPoll = 4;
  static constexpr uint32_t kStrangersLogged = 10;  // a second
  // Connections that were let go keep their places until the transport has told their end.
  static constexpr uint32_t kYieldingMax = 64;

  /// Serves the doorbells after a transport has taken octets and before it hands them up.
  class DoorbellsFirst final : public llp::BeforeHandUp {
   public:
    explicit DoorbellsFirst(Device& device) : device_(device) {}
    void before_hand_up() override { served += device_.serve_doorbells(); }
    uint32_t served = 0;

   private:
    Device& device_;
  };

  /// Hands inbound connections to the device.
  class Acceptor final : public llp::Acceptor {
   public:
    explicit Acceptor(Device& device) : device_(device) {}
    llp::StreamUser* accept(llp::Stream& stream, const Endpoint& local, const Endpoint& remote,
                            base::Now now) override {
      return device_.incoming(stream, local, remote, now);
    }
    [[nodiscard]] uint32_t first_room(const Endpoint&) const override {
      return device_.config_.mpa.receive_window;
    }
    bool make_room(base::Now) override { return device_.make_room(); }

   private:
    Device& device_;
  };

  Device(const DeviceConfig& config, base::Now now);
  uint32_t poll_transport(base::Now now);
  uint32_t receive(base::Now now);
  uint32_t receive_burst(base::Now now, uint32_t& work);
  template <class Kind>
  Result<SocketListener<Kind>*> listen_for(const Endpoint& local, uint32_t backlog,
                                           const tcp::ConnectionOptions& options,
                                           const typename Kind::Setup& setup) {
    if (!own_) return base::fail(ErrorCode::Unsupported, Kind::kWithoutPort);
    return own_->table<Kind>().listen(local, backlog, options, setup);
  }
  template <class Kind>
  Result<typename Kind::Socket*> open_socket(const Endpoint& remote,
                                             const tcp::ConnectionOptions& options,
                                             const typename Kind::Setup& setup, base::Now now) {
    if (!own_) return base::fail(ErrorCode::Unsupported, Kind::kWithoutPort);
    const auto local = local_towards(remote);
    if (!local) return tl::unexpected(local.error());
    return own_->table<Kind>().connect(*local, remote, options, setup, now);
  }
  uint32_t serve_doorbells();
  void fire_timers(base::Now now);
  void reap();
  void reap_ended();
  /// What the application learns of an attempt that failed.
  void tell_start_failed(Connection& connection, ConnectionState before, framing::StartFailure why,
                         base::ByteView private_data);
  void emit(Event event);
  /// Of a connection that the application has not taken: half of the queue is not for those, and
  /// what is told of failed ones leaves as much to requests in order. False: it was not told.
  bool emit_of_stranger(Event event);
  void refuse_unheard();
  void log_start_failure(const Connection& connection, framing::StartFailure why);
  llp::StreamUser* incoming(llp::Stream& stream, const Endpoint& local, const Endpoint& remote,
                            base::Now now);

  // inbound.cpp
  /// \param what makes the end of the line
  template <typename F>
  void note_pressure(base::PressureLog& log, const F& what, const Endpoint& last) {
    const uint64_t count = log.note(last_now_);
    if (count == 0) return;
    base::log(base::LogLevel::Warning, "rnic", [&] {
      return config_.name + ": " + std::to_string(count) + " inbound " +
             (count == 1 ? "association" : "associations, at last") + " from " + to_string(last) +
             ", " + what();
    });
  }
  [[nodiscard]] bool has_place() const;
  /// Makes one where it can. False: there is none.
  bool find_place();
  bool make_room();
  void displace(const IpAddress& newcomer, const char* why);
  bool let_go(base::Handle who, const char* why);
  void linger(Connection& connection);
  void take_seat(Connection& connection, llp::Admission& table);
  static void leave_seat(Connection& connection);

  // silence.cpp
  void watch_silence(Connection& connection);
  [[nodiscard]] bool has_moved(Connection& connection);
  void look_at_silence(Connection& connection, base::Now now);
  bool displace_silent();

  [[nodiscard]] Result<Endpoint> local_towards(const Endpoint& remote) const;
  Status check_spec(const QueuePairSpec& spec) const;
  [[nodiscard]] Framing framing_of_listener(const Endpoint& local) const;
  Status check_unconnected(const QueuePair& qp) const;
  [[nodiscard]] Status check_request(base::ByteView private_data,
                                     const framing::StartWish& wish) const;
  Status check_options(const QueuePair& qp, const ConnectOptions& options) const;
  Result<Connection*> convert(StreamSocket& socket, framing::Role role, base::ByteView data,
                              const framing::StartWish& wish, base::ByteView last_message,
                              base::Now now);
  Status dial(QueuePair& qp, const Endpoint& remote, base::ByteView private_data,
              const framing::StartWish& wish, bool again, base::Now now);
  [[nodiscard]] Status check_framing(Framing framing) const;
  Status dial_framed(QueuePair& qp, const Endpoint& remote, base::ByteView private_data,
                     const ConnectOptions& options, base::Now now);
  Result<Connection*> start(base::Handle handle, QueuePair& qp, const Endpoint& remote,
                            base::Now now);
  base::Handle make_responder(const Endpoint& local);
  [[nodiscard]] Status no_connection_left() const;
  void redial();
  [[nodiscard]] bool wants_redial(const Connection& connection, framing::StartFailure why) const;
  Result<Connection*> find_request(RequestHandle request);

  DeviceConfig config_;
  mem::StagTable memory_;
  framing::HoldStorePtr hold_;
  tuf::PackStorePtr pack_;
  tuf::KeySource tuf_keys_;
  mpa::Counters mpa_counters_;
  tuf::Counters tuf_counters_;
  rdmap::Counters rdmap_counters_;
  DeviceCounters counters_;

  std::optional<PortStack> own_;         // with a port
  llp::Transport* transport_ = nullptr;  // own_->stack, or the one that was given

  std::vector<bool> pds_;                       // index: PD number; 0 is never given out
  std::vector<uint32_t> pd_users_;              // regions and queue pairs of each PD
  std::map<Endpoint, Framing> listen_framing_;  // of listeners that have their own
  std::vector<std::unique_ptr<CompletionQueue>> cqs_;
  std::vector<std::unique_ptr<QueuePair>> qps_;  // index: QP number; 0 is never given out
  base::Slab<Connection> connections_;
  std::vector<std::unique_ptr<QueuePair>> orphans_;  // destroyed, waiting for their stream's end
  Acceptor acceptor_;
  std::vector<base::Handle> ended_;    // connections to be reaped
  std::vector<base::Handle> unheard_;  // requests that the application was not told of
  std::vector<std::unique_ptr<Connection::Redial>> redials_;  // at most one a connection
  base::TimerWheel start_timers_;
  base::Now last_now_;               // of the latest poll()
  net::RateLimit strangers_logged_;  // start-ups that a peer asked for and spoiled
  uint32_t pending_requests_ = 0;    // Invariant: <= limits.max_pending_requests
  llp::Admission starting_;          // inbound, without a whole valid Request
  llp::Admission leaving_;           // inbound, failed or rejected, not closed yet
  llp::Admission silent_;            // inbound, established, silent for limits.silence
  base::TimerWheel silence_timers_;
  uint32_t yielding_ = 0;  // let go, not ended yet
  base::PressureLog displaced_log_;
  base::PressureLog silent_log_;
  base::PressureLog refused_log_;
  base::PressureLog unanswered_log_;
  base::Doorbells doorbells_;
  base::SpscRing<Event> events_;
};

}  // namespace rnic::device

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
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/doorbell.hpp"
#include "base/fail.hpp"
#include "device/config.hpp"
#include "device/connection_service.hpp"
#include "device/counters.hpp"
#include "device/doorbell_turn.hpp"
#include "device/event_queue.hpp"
#include "device/port_stack.hpp"
#include "device/resources.hpp"
#include "device/terminate_tally.hpp"
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
  /// Ends what shut_down() has not ended, as if it were called at time 0.
  ~Device();
  Device(const Device&) = delete;
  Device& operator=(const Device&) = delete;

  // --- The loop (worker) ---

  /// One turn: receive a burst, answer doorbells, fire timers, send. \return frames and doorbells
  /// served; 0 means idle.
  uint32_t poll(base::Now now);
  /// The time of a call of the application that is carried out between two turns.
  void begin_call(base::Now now) { resources_.begin_turn(now); }
  /// When poll() has something to do although nothing arrives: timers, a decorator's held frames.
  [[nodiscard]] base::Now next_deadline() const;
  /// The application is gone and gets no events: queue pairs are destroyed, and every stream is
  /// reset on the wire. No other call follows.
  void shut_down(base::Now now);
  /// Before a sleep, behind a turn that served nothing: a descriptor that is readable for poll() as
  /// soon as something has come that the next turn would serve (port::Port::arm()). Nothing: there
  /// is none, or it would not tell of what the device waits for now.
  std::optional<int> arm();

  // --- Resources (worker) ---

  Result<uint32_t> alloc_pd() { return resources_.alloc_pd(); }
  Status free_pd(uint32_t pd) { return resources_.free_pd(pd); }
  Result<mem::Stag> register_memory(const mem::RegionSpec& spec) {
    return resources_.register_memory(spec);
  }
  /// Revokes. When it has returned the device neither reads nor writes one octet of that memory; a
  /// stream that has to retransmit octets of it later is aborted. WrongState while windows are
  /// bound to the region.
  Status deregister_memory(mem::Stag stag) { return resources_.deregister_memory(stag); }
  /// The same, whatever is bound to the region: it is revoked with it.
  void release_memory(mem::Stag stag) { resources_.release_memory(stag); }
  /// Registers it anew, also in another domain: see mem::StagTable::change().
  Result<mem::Stag> reregister_memory(mem::Stag stag, const mem::RegionSpec& spec) {
    return resources_.reregister_memory(stag, spec);
  }
  /// An STag that work requests register up to `max_pieces` pieces by; deregister_memory() ends it.
  Result<mem::Stag> allocate_region(uint32_t pd, uint32_t max_pieces) {
    return resources_.allocate_region(pd, max_pieces);
  }
  // Memory windows: see mem::StagTable.
  Result<mem::Stag> allocate_window(uint32_t pd, WindowType type) {
    return resources_.allocate_window(pd, type);
  }
  Result<mem::Stag> bind_window(const mem::Binding& binding) {
    return resources_.bind_window(binding);
  }
  Status unbind_window(mem::Stag stag) { return resources_.unbind_window(stag); }
  void free_window(mem::Stag stag) { resources_.free_window(stag); }
  Result<CompletionQueue*> create_cq(uint32_t depth, const CompletionQueueOptions& options = {}) {
    return resources_.create_cq(depth, options);
  }
  Status resize_cq(CompletionQueue& cq, uint32_t depth) { return resources_.resize_cq(cq, depth); }
  [[nodiscard]] CqInfo info(const CompletionQueue& cq) const { return resources_.info(cq); }
  Status destroy_cq(CompletionQueue* cq) { return resources_.destroy_cq(cq); }
  /// Of whoever named them nothing is left: they go with the last that stands on them.
  void release_pd(uint32_t pd) { resources_.release_pd(pd); }
  void release_cq(CompletionQueue* cq) { resources_.release_cq(cq); }
  Result<SharedReceiveQueue*> create_srq(const SharedReceiveSpec& spec) {
    return resources_.create_srq(spec, events_);
  }
  Status destroy_srq(SharedReceiveQueue* srq) { return resources_.destroy_srq(srq); }
  void release_srq(SharedReceiveQueue* srq) { resources_.release_srq(srq); }
  Status resize_srq(SharedReceiveQueue& srq, uint32_t depth) {
    return resources_.resize_srq(srq, depth);
  }
  [[nodiscard]] SrqInfo info(const SharedReceiveQueue& srq) const { return resources_.info(srq); }
  Result<QueuePair*> create_qp(const QueuePairSpec& spec);
  /// Aborts the connection if there is one. Completions not yet polled stay in the CQs.
  Status destroy_qp(QueuePair* qp);

  // --- Connections (worker) ---

  /// \param local an unspecified address: every address of the device, of either family
  Status listen(const Endpoint& local, const ListenOptions& options = {}) {
    return connections_.listen(local, options);
  }
  Status unlisten(const Endpoint& local) { return connections_.unlisten(local); }
  Status listen(uint16_t port, const ListenOptions& options = {}) {
    return listen(Endpoint{IpAddress{}, port}, options);
  }
  /// Starts an active connection. The outcome is an event: Established, Rejected or ConnectFailed.
  Status connect(QueuePair& qp, const Endpoint& remote, base::ByteView private_data, base::Now now,
                 const ConnectOptions& options = {}) {
    return connections_.connect(qp, remote, private_data, now, options);
  }
  /// Answers a ConnectRequest. With less Reads than options.ord_required it becomes a reject, and
  /// RequestWithdrawn follows.
  Status accept(RequestHandle request, QueuePair& qp, base::ByteView private_data, base::Now now,
                const ConnectOptions& options = {}) {
    return connections_.accept(request, qp, private_data, now, options);
  }
  Status reject(RequestHandle request, base::ByteView private_data, base::Now now) {
    return connections_.reject(request, private_data, now);
  }

  // Streaming connections become RDMA connections (RFC 5044 s.7.1.3 to 7.1.5): see
  // StreamSocket::can_be_converted(). When MPA is left by a reject the socket streams again.

  /// As connect(), behind what the socket has sent: the initiator.
  Status connect(QueuePair& qp, StreamSocket& socket, base::ByteView private_data, base::Now now,
                 const ConnectOptions& options = {}) {
    return connections_.connect(qp, socket, private_data, now, options);
  }
  /// The responder: sends `last_message`, then the peer's Request is awaited: ConnectRequest.
  Status await_rdma(StreamSocket& socket, base::ByteView last_message, base::Now now) {
    return connections_.await_rdma(socket, last_message, now);
  }
  /// Ends a connect that is under way: ConnectFailed follows. WrongState where there is none.
  Status cancel_connect(QueuePair& qp) { return connections_.cancel_connect(qp); }
  /// Graceful: what was posted is sent, then FIN. Disconnected follows. One that has ended already
  /// is left as it is. WrongState without a connection since the queue pair became idle.
  Status disconnect(QueuePair& qp) { return connections_.disconnect(qp); }
  /// The same, and receives are flushed with it; also where there was never a connection. When
  /// `limit` is over the connection is reset.
  Status drain(QueuePair& qp, base::Duration limit, base::Now now) {
    return connections_.drain(qp, limit, now);
  }
  /// See QueuePairChange. Nothing has changed when it fails.
  Status modify_qp(QueuePair& qp, const QueuePairChange& change) {
    return connections_.modify(qp, change);
  }
  /// Traces the queue pair's connection; nullptr ends it. WrongState without a connection.
  Status set_trace(QueuePair& qp, base::TraceSink* sink) {
    return connections_.set_trace(qp, sink);
  }
  /// The sink is not called any more, connected or not.
  void end_trace(QueuePair& qp) { connections_.end_trace(qp); }

  // --- Plain and framed streams (worker; see socket_table.hpp). Unsupported without a port ---

  /// \param local as listen()'s \param options nothing: what the config says for every connection
  Result<StreamListener*> listen_stream(
      const Endpoint& local, uint32_t backlog,
      const std::optional<tcp::ConnectionOptions>& options = std::nullopt) {
    return listen_for<StreamKind>(local, backlog, options.value_or(default_options()), {});
  }
  Result<FramedListener*> listen_framed(const Endpoint& local, uint32_t backlog,
                                        const tcp::ConnectionOptions& options,
                                        const FramingOptions& setup) {
    return listen_for<FramedKind>(local, backlog, options, setup);
  }
  /// Starts an active connection; the socket tells how it went. \param options as listen_stream()'s
  Result<StreamSocket*> connect_stream(const Endpoint& remote,
                                       const std::optional<tcp::ConnectionOptions>& options,
                                       base::Now now) {
    return open_socket<StreamKind>(remote, options.value_or(default_options()), {}, now);
  }
  Result<FramedSocket*> connect_framed(const Endpoint& remote,
                                       const tcp::ConnectionOptions& options,
                                       const FramingOptions& setup, base::Now now) {
    return open_socket<FramedKind>(remote, options, setup, now);
  }
  /// What the config says for every connection.
  [[nodiscard]] tcp::ConnectionOptions default_options() const {
    return own_ ? own_->stack.default_options() : tcp::ConnectionOptions{};
  }
  // has_port() holds, as for every socket.
  [[nodiscard]] StreamTable& streams() { return own_->streams; }
  [[nodiscard]] FramedTable& framed() { return own_->framed; }

  // --- Application side ---

  /// Any thread. \param number QueuePair::doorbell() or AppSocket::doorbell()
  void ring_doorbell(uint32_t number) { doorbells_.ring(number); }
  [[nodiscard]] bool doorbell_ringing() const { return doorbells_.ringing(); }
  /// One thread at a time. Nothing when there is none.
  std::optional<Event> poll_event() { return events_.poll(); }
  /// Worker: the application's own pointer to the device, for its events.
  void set_context(void* context) { events_.set_context(context); }
  /// Worker: who is told of each event from now on.
  void set_event_listener(std::unique_ptr<QueueListener> listener) {
    events_.set_listener(std::move(listener));
  }

  // --- Facts ---

  [[nodiscard]] const DeviceConfig& config() const { return config_; }
  /// False: it stands on another transport.
  [[nodiscard]] bool has_port() const { return own_.has_value(); }
  /// has_port() holds.
  [[nodiscard]] const port::Port& port() const { return own_->port; }
  [[nodiscard]] std::vector<CounterValue> counters() const;
  /// Calls `visit(layer, row)` for each of them; needs no memory.
  void for_each_counter(
      const std::function<void(const char* layer, const base::CounterRow& row)>& visit) const;
  /// has_port() holds.
  [[nodiscard]] const tcp::Counters& tcp_counters() const { return own_->stack.counters(); }
  [[nodiscard]] const mpa::Counters& mpa_counters() const { return framing_.mpa_counters; }
  [[nodiscard]] const tuf::Counters& tuf_counters() const { return framing_.tuf_counters; }
  [[nodiscard]] const rdmap::Counters& rdmap_counters() const { return rdmap_counters_; }
  /// has_port() holds.
  [[nodiscard]] const net::Counters& net_counters() const { return own_->interface.counters(); }
  [[nodiscard]] const DeviceCounters& device_counters() const { return counters_; }
  [[nodiscard]] const mem::StagTable& memory() const { return resources_.memory(); }
  [[nodiscard]] const framing::HoldStore& hold_store() const { return *framing_.hold; }
  [[nodiscard]] DeviceLimits limits() const;
  /// Terminate messages by code, of all queue pairs that there were.
  [[nodiscard]] std::vector<TerminateCount> terminates() const { return terminates_.counts(); }
  [[nodiscard]] QueuePairInfo info(const QueuePair& qp, base::Now now) {
    return connections_.info(qp, now);
  }
  /// Connections that have not ended.
  [[nodiscard]] std::vector<ConnectionSummary> connections(base::Now now) {
    return connections_.all(now);
  }
  /// Resets one; NotFound when it has ended.
  Status abort(const ConnectionId& id) { return connections_.abort(id); }
  /// A key that no other framed stream of the device has (ULP framing).
  [[nodiscard]] uint64_t next_framing_key() { return framing_.tuf_keys.next(); }
  [[nodiscard]] uint32_t live_connections() const { return connections_.live(); }
  /// No connection, nothing queued, nothing held: everything was returned.
  [[nodiscard]] bool quiescent() const;

  /// Checks the invariants of all that it has: the stack, the connections with their sessions, the
  /// queue pairs with their endpoints, the hold space. Between turns.
  void validate();

  /// poll() ended by an exception.
  void count_starved_turn() { ++counters_.starved_turns; }

 private:
  static constexpr uint32_t kBurst = 32;
  static constexpr uint32_t kBurstsPerPoll = 4;

  Device(const DeviceConfig& config, base::Now now);
  uint32_t poll_transport(base::Now now);
  [[nodiscard]] DoorbellTurn doorbells(base::Now now) {
    return {doorbells_, resources_, receive_waits_, own_ ? &*own_ : nullptr, now};
  }
  uint32_t receive(base::Now now);
  uint32_t receive_burst(base::Now now, DoorbellTurn& doorbells);
  template <class Kind>
  Result<SocketListener<Kind>*> listen_for(const Endpoint& local, uint32_t backlog,
                                           const tcp::ConnectionOptions& options,
                                           const typename Kind::Setup& setup) {
    if (!own_) return base::fail(ErrorCode::Unsupported, Kind::kWithoutPort);
    if (auto status = own_->check_listen(local); !status) return tl::unexpected(status.error());
    return own_->table<Kind>().listen(listened_on(local), backlog, options, setup);
  }
  template <class Kind>
  Result<typename Kind::Socket*> open_socket(const Endpoint& remote,
                                             const tcp::ConnectionOptions& options,
                                             const typename Kind::Setup& setup, base::Now now) {
    if (!own_) return base::fail(ErrorCode::Unsupported, Kind::kWithoutPort);
    const auto local = connections_.local_towards(remote);
    if (!local) return tl::unexpected(local.error());
    return own_->table<Kind>().connect(*local, remote, options, setup, now);
  }
  void fire_timers(base::Now now);
  void reap(base::Now now);

  const DeviceConfig config_;
  DeviceCounters counters_;
  TerminateTally terminates_;
  rdmap::Counters rdmap_counters_;
  FramingParts framing_;
  std::optional<PortStack> own_;         // with a port
  llp::Transport* transport_ = nullptr;  // own_->stack, or the one that was given
  ReceiveWaits receive_waits_;
  Resources resources_;
  base::Doorbells doorbells_;
  EventQueue events_;
  ConnectionService connections_;
};

}  // namespace rnic::device

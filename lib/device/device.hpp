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
#include "device/consumers.hpp"
#include "device/counters.hpp"
#include "device/doorbell_turn.hpp"
#include "device/event_queue.hpp"
#include "device/port_stack.hpp"
#include "device/reserved_ports.hpp"
#include "device/resources.hpp"
#include "device/stalled_responders.hpp"
#include "device/terminate_tally.hpp"
#include "tcp/tcp.hpp"
#include "tuf/tuf.hpp"

namespace rnic::device {

/// What a turn looks at.
enum class Turn : uint8_t {
  Whole,
  Posted,  ///< what the application has posted, and timers: no frame or octet of a peer is taken
};

class alignas(64) Device {
 public:
  /// \param port, reassembler outlive the device; without a reassembler fragments are dropped.
  Device(const DeviceConfig& config, port::Port& port, base::Now now,
         net::Reassembler* reassembler = nullptr);
  /// A device without a port: connections come from `transport`, which outlives the device, and
  /// there are no streaming sockets. config.net and config.tcp are not used.
  Device(const DeviceConfig& config, llp::Transport& transport, base::Now now);
  /// Shuts down, as of time 0, whatever shut_down() has not ended.
  ~Device();
  Device(const Device&) = delete;
  Device& operator=(const Device&) = delete;

  // --- The loop (worker) ---

  /// One turn: receive a burst (not in Turn::Posted), answer doorbells, fire timers, send. \return
  /// frames and doorbells served; 0 means idle.
  uint32_t poll(base::Now now, Turn what = Turn::Whole);
  /// A call of the application is carried out between two turns: its time is `now`.
  void begin_call(base::Now now) { resources_.begin_turn(now); }
  /// The time at which poll() has something to do even if nothing arrives: a timer fires, or a
  /// decorator of the port releases frames that it held.
  [[nodiscard]] base::Now next_deadline() const;
  /// The application is gone and gets no events: queue pairs are destroyed, and every stream is
  /// reset on the wire. No other call follows.
  void shut_down(base::Now now);
  /// Called before the worker sleeps, after a turn that served nothing. \return a descriptor that
  /// becomes readable for poll(2) as soon as something has come that the next turn would serve
  /// (port::Port::arm()); nothing: there is no descriptor, or it would not tell of what the device
  /// waits for now
  std::optional<int> arm();

  // --- Resources (worker) ---

  /// The consumers that resources and listeners are made for; 0 is the application as a whole.
  [[nodiscard]] Consumers& consumers() { return consumers_; }
  /// The ports that are reserved: a call with PortClaim::Reserved uses one of them up.
  [[nodiscard]] ReservedPorts& reserved_ports() { return reserved_ports_; }
  Result<uint32_t> alloc_pd(uint32_t consumer = 0) { return resources_.alloc_pd(consumer); }
  Status free_pd(uint32_t pd) { return resources_.free_pd(pd); }
  Result<mem::Stag> register_memory(const mem::RegionSpec& spec) {
    return resources_.register_memory(spec);
  }
  /// Revokes the region. After the call the device neither reads nor writes one octet of its
  /// memory; a stream that has to retransmit octets of it later is aborted. WrongState while
  /// windows are bound to the region.
  Status deregister_memory(mem::Stag stag) { return resources_.deregister_memory(stag); }
  /// As deregister_memory(), but windows that are bound to the region are revoked with it.
  void release_memory(mem::Stag stag) { resources_.release_memory(stag); }
  /// Registers the region anew, possibly in another domain: see mem::StagTable::change().
  Result<mem::Stag> reregister_memory(mem::Stag stag, const mem::RegionSpec& spec) {
    return resources_.reregister_memory(stag, spec);
  }
  /// Allocates an STag under which work requests can register up to `max_pieces` pieces.
  /// deregister_memory() frees it.
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
  Result<CompletionQueue*> create_cq(uint32_t depth, const CompletionQueueOptions& options = {},
                                     uint32_t consumer = 0) {
    return resources_.create_cq(depth, options, consumer);
  }
  Status resize_cq(CompletionQueue& cq, uint32_t depth) { return resources_.resize_cq(cq, depth); }
  [[nodiscard]] CqInfo info(const CompletionQueue& cq) const { return resources_.info(cq); }
  Status destroy_cq(CompletionQueue* cq) { return resources_.destroy_cq(cq); }
  // The application's handle is gone: the resource goes with the last object that uses it.
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
  /// \param claim Reserved: `local` is what ReservedPorts::reserve() returned
  Result<Endpoint> listen(const Endpoint& local, const ListenOptions& options = {},
                          uint32_t consumer = 0, llp::PortClaim claim = llp::PortClaim::None) {
    return connections_.listen(local, options, consumer, claim);
  }
  /// PermissionDenied: another consumer listens there; what a released one listens on is for
  /// consumer 0 to end.
  Status unlisten(const Endpoint& local, uint32_t consumer = 0) {
    return connections_.unlisten(local, consumer);
  }
  Result<Endpoint> listen(uint16_t port, const ListenOptions& options = {}) {
    return listen(Endpoint{IpAddress{}, port}, options);
  }
  /// Starts an active connection. The outcome is an event: Established, Rejected or ConnectFailed.
  /// \param claim Reserved: `options.source` is what ReservedPorts::reserve() returned
  Status connect(QueuePair& qp, const Endpoint& remote, base::ByteView private_data, base::Now now,
                 const ConnectOptions& options = {}, llp::PortClaim claim = llp::PortClaim::None) {
    return connections_.connect(qp, remote, private_data, now, options, claim);
  }
  /// Answers a ConnectRequest. If the peer serves fewer Reads than options.ord_required the answer
  /// becomes a reject, and RequestWithdrawn follows.
  Status accept(RequestHandle request, QueuePair& qp, base::ByteView private_data, base::Now now,
                const ConnectOptions& options = {}) {
    return connections_.accept(request, qp, private_data, now, options);
  }
  Status reject(RequestHandle request, base::ByteView private_data, base::Now now) {
    return connections_.reject(request, private_data, now);
  }

  // Streaming connections become RDMA connections (RFC 5044 s.7.1.3 to 7.1.5): see
  // StreamSocket::can_be_converted(). When a reject ends MPA the socket streams again.

  /// As connect(), over the stream of `socket`, behind what it has sent. This side is the
  /// initiator.
  Status connect(QueuePair& qp, StreamSocket& socket, base::ByteView private_data, base::Now now,
                 const ConnectOptions& options = {}) {
    return connections_.connect(qp, socket, private_data, now, options);
  }
  /// This side becomes the responder: it sends `last_message` and awaits the peer's Request, which
  /// comes as the event ConnectRequest.
  Status await_rdma(StreamSocket& socket, base::ByteView last_message, base::Now now) {
    return connections_.await_rdma(socket, last_message, now);
  }
  /// Ends a connect that is under way: ConnectFailed follows. WrongState when none is under way.
  Status cancel_connect(QueuePair& qp) { return connections_.cancel_connect(qp); }
  /// Closes gracefully: what was posted is sent, then FIN. Disconnected follows. A connection that
  /// has ended already is left as it is. WrongState if the queue pair has had no connection since
  /// it became idle.
  Status disconnect(QueuePair& qp) { return connections_.disconnect(qp); }
  /// As disconnect(), and flushes the receives too; also works if there was never a connection.
  /// After `limit` the connection is reset.
  Status drain(QueuePair& qp, base::Duration limit, base::Now now) {
    return connections_.drain(qp, limit, now);
  }
  /// See QueuePairChange. Nothing has changed when it fails.
  Status modify_qp(QueuePair& qp, const QueuePairChange& change, base::Now now) {
    return connections_.modify(qp, change, now);
  }
  /// Traces the queue pair's connection; WrongState without one. nullptr ends the trace, whether or
  /// not the queue pair is connected: the sink is not called any more.
  Status set_trace(QueuePair& qp, base::TraceSink* sink) {
    return connections_.set_trace(qp, sink);
  }

  // --- Plain and framed streams (worker; see socket_table.hpp). Unsupported without a port ---

  /// \param local, claim as for listen() \param backlog nothing: the kind's own, or all that there
  /// may be \param options nothing: default_options()
  Result<StreamListener*> listen_stream(
      const Endpoint& local, std::optional<uint32_t> backlog,
      const std::optional<tcp::ConnectionOptions>& options = std::nullopt,
      llp::PortClaim claim = llp::PortClaim::None) {
    return listen_for<StreamKind>(local, backlog, options.value_or(default_options()), {}, claim);
  }
  Result<FramedListener*> listen_framed(const Endpoint& local, std::optional<uint32_t> backlog,
                                        const tcp::ConnectionOptions& options,
                                        const FramingOptions& setup,
                                        llp::PortClaim claim = llp::PortClaim::None) {
    return listen_for<FramedKind>(local, backlog, options, setup, claim);
  }
  /// Starts an active connection; the socket tells how it went. \param options as for
  /// listen_stream()
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
  /// The options that the configuration sets for every connection.
  [[nodiscard]] tcp::ConnectionOptions default_options() const {
    return own_ ? own_->stack.default_options() : tcp::ConnectionOptions{};
  }
  // Precondition: has_port(), as for everything about sockets.
  [[nodiscard]] StreamTable& streams() { return own_->streams; }
  [[nodiscard]] FramedTable& framed() { return own_->framed; }

  // --- Application side ---

  /// Any thread. \param number QueuePair::doorbell() or AppSocket::doorbell()
  void ring_doorbell(uint32_t number) { doorbells_.ring(number); }
  [[nodiscard]] bool doorbell_ringing() const { return doorbells_.ringing(); }
  /// The oldest event; nothing when there is none. One thread at a time.
  std::optional<Event> poll_event() { return events_.poll(); }
  /// Worker: the application's own pointer to the device, for its events.
  void set_context(void* context) { events_.set_context(context); }
  /// Worker: `listener` is told of each event from now on.
  void set_event_listener(std::unique_ptr<QueueListener> listener) {
    events_.set_listener(std::move(listener));
  }

  // --- Facts ---

  [[nodiscard]] const DeviceConfig& config() const { return config_; }
  /// False: the device stands on another transport, without a port.
  [[nodiscard]] bool has_port() const { return own_.has_value(); }
  /// Precondition: has_port().
  [[nodiscard]] const port::Port& port() const { return own_->port; }
  /// Calls `visit(layer, row)` for each counter; needs no memory.
  void for_each_counter(
      const std::function<void(const char* layer, const base::CounterRow& row)>& visit) const;
  /// Precondition: has_port().
  [[nodiscard]] const tcp::Counters& tcp_counters() const { return own_->stack.counters(); }
  [[nodiscard]] const mpa::Counters& mpa_counters() const { return framing_.mpa_counters; }
  [[nodiscard]] const tuf::Counters& tuf_counters() const { return framing_.tuf_counters; }
  [[nodiscard]] const rdmap::Counters& rdmap_counters() const { return rdmap_counters_; }
  /// Precondition: has_port().
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
  /// Resets a connection; NotFound when it has ended.
  Status abort(const ConnectionId& id) { return connections_.abort(id); }
  /// A key that no other framed stream of the device has (ULP framing).
  [[nodiscard]] uint64_t next_framing_key() { return framing_.tuf_keys.next(); }
  [[nodiscard]] uint32_t live_connections() const { return connections_.live(); }
  /// No connection, nothing queued, nothing held: everything was returned.
  [[nodiscard]] bool quiescent() const;

  /// Checks the invariants of all parts of the device: the stack, the connections with their
  /// sessions, the queue pairs with their endpoints, the hold space. Called between turns.
  void validate();

  /// Counts a turn that an exception has ended.
  void count_starved_turn() { ++counters_.starved_turns; }

 private:
  static constexpr uint32_t kFramesPerPoll = 128;  // behind which no further burst is taken

  Device(const DeviceConfig& config, base::Now now);
  uint32_t poll_transport(base::Now now, Turn what);
  [[nodiscard]] DoorbellTurn doorbells(base::Now now) {
    return {doorbells_, resources_, receive_waits_, own_ ? &*own_ : nullptr, now};
  }
  uint32_t receive(base::Now now);
  struct Burst {
    uint32_t taken = 0;  // frames
    bool more = false;   // the port may have more
  };
  Burst receive_burst(base::Now now, DoorbellTurn& doorbells);
  template <class Kind>
  Result<SocketListener<Kind>*> listen_for(const Endpoint& local, std::optional<uint32_t> backlog,
                                           const tcp::ConnectionOptions& options,
                                           const typename Kind::Setup& setup,
                                           llp::PortClaim claim) {
    if (!own_) return base::fail(ErrorCode::Unsupported, Kind::kWithoutPort);
    auto status = own_->check_listen("listen", local);
    if (status) status = reserved_ports_.check("listen", local, 0, claim);
    if (!status) return tl::unexpected(status.error());
    auto made = own_->table<Kind>().listen(listened_on(local), backlog, options, setup, claim);
    if (!made) return tl::unexpected(reserved_ports_.named(std::move(made.error()), local));
    reserved_ports_.used(local, claim);
    return made;
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
  const rdmap::EndpointFaults faults_;
  StalledResponders stalls_;
  Consumers consumers_;
  rdmap::RequestStore requests_;
  std::optional<QueuePairParts> qp_parts_;  // from the constructor's end on
  Resources resources_;
  base::Doorbells doorbells_;
  EventQueue events_;
  ReservedPorts reserved_ports_;
  ConnectionService connections_;
};

}  // namespace rnic::device

/// \file
/// ConnectionService: a connection's life from the request for one to the end of its stream:
/// listening, connecting, answering, converting, and the events of each.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "base/doorbell.hpp"
#include "base/timer_wheel.hpp"
#include "device/config.hpp"
#include "device/connect_rules.hpp"
#include "device/connection.hpp"
#include "device/connection_report.hpp"
#include "device/connection_table.hpp"
#include "device/consumers.hpp"
#include "device/counters.hpp"
#include "device/event_queue.hpp"
#include "device/listeners.hpp"
#include "device/pending_requests.hpp"
#include "device/port_stack.hpp"
#include "device/queue_pair.hpp"
#include "device/queue_pair_control.hpp"
#include "device/redials.hpp"
#include "device/reserved_ports.hpp"
#include "device/resources.hpp"
#include "net/rate_limit.hpp"

namespace rnic::device {

/// Belongs to the worker.
class ConnectionService final : public QueuePairOwner,
                                private ConnectionOwner,
                                private llp::Acceptor,
                                private ConnectionTable::Leaving {
 public:
  /// The parts of the device that the service works with. They outlive it.
  struct Parts {
    Resources& resources;
    Consumers& consumers;
    EventQueue& events;
    ReservedPorts& reserved_ports;
    FramingParts& framing;
    DeviceCounters& counters;
    base::Doorbells& doorbells;
  };
  ConnectionService(const DeviceConfig& config, const Parts& parts, base::Now now);
  /// Called once, before anything else. \param own the stack that `transport` is part of; nullptr:
  /// the transport is another one
  void attach(llp::Transport& transport, PortStack* own) {
    transport_ = &transport;
    own_ = own;
    reserved_ports_.attach(transport, own, listeners_);
    rules_.set_own_stack(own != nullptr);
  }

  // Device documents these calls.
  Result<Endpoint> listen(const Endpoint& local, const ListenOptions& options, uint32_t consumer,
                          llp::PortClaim claim);
  Status unlisten(const Endpoint& local, uint32_t consumer);
  Status connect(QueuePair& qp, const Endpoint& remote, base::ByteView private_data, base::Now now,
                 const ConnectOptions& options, llp::PortClaim claim);
  Status connect(QueuePair& qp, StreamSocket& socket, base::ByteView private_data, base::Now now,
                 const ConnectOptions& options);
  Status await_rdma(StreamSocket& socket, base::ByteView last_message, base::Now now);
  Status accept(RequestHandle request, QueuePair& qp, base::ByteView private_data, base::Now now,
                const ConnectOptions& options);
  Status reject(RequestHandle request, base::ByteView private_data, base::Now now);
  Status cancel_connect(QueuePair& qp);
  Status disconnect(QueuePair& qp);
  Status drain(QueuePair& qp, base::Duration limit, base::Now now);
  Status modify(QueuePair& qp, const QueuePairChange& change, base::Now now);
  Status set_trace(QueuePair& qp, base::TraceSink* sink);
  /// Our end of a connection to `remote` (RFC 9293 MUST-44). \param source the parts of it that the
  /// application has chosen
  [[nodiscard]] Result<Endpoint> local_towards(const Endpoint& remote,
                                               const Endpoint& source = {}) const;

  /// The application has destroyed the queue pair. Its stream is reset, and it lives on without
  /// events until that has ended.
  void orphan(std::unique_ptr<QueuePair> qp);
  /// Resets every stream, without an event.
  void abort_all();

  // --- The loop ---

  [[nodiscard]] base::Now next_deadline() const {
    const base::Now next =
        base::earlier(start_timers_.next_deadline(), connections_.next_deadline());
    return base::earlier(next, control_.next_deadline());
  }
  void on_timers(base::Now now);
  /// Does what callbacks of the turn had to leave until none of them is under way.
  void reap(base::Now now) {
    if (requests_.has_unheard() || connections_.has_ended() || redials_.any()) do_reap(now);
  }

  // --- Facts ---

  /// Checks the invariants of each connection, and recounts the requests that wait.
  void validate() {
    connections_.validate();
    for (const auto& qp : orphans_) qp->validate();
    requests_.validate();
  }
  /// Adds to each consumer's counts, which stand at its number, what it has here.
  void count(Consumers::Found& found);
  [[nodiscard]] uint32_t live() const { return connections_.live(); }
  [[nodiscard]] bool has_orphans() const { return !orphans_.empty(); }
  [[nodiscard]] QueuePairInfo info(const QueuePair& qp, base::Now now) {
    return ConnectionReport(*transport_, own_, now).info(qp, connections_.get(qp.connection()));
  }
  [[nodiscard]] std::vector<ConnectionSummary> all(base::Now now);
  Status abort(const ConnectionId& id);

  // QueuePairOwner
  void completion_overrun(QueuePair& qp, CompletionQueue& cq) override;
  void last_receive_done(QueuePair& qp) override;
  void rtr_sent(QueuePair& qp, base::Now now) override;
  void first_fpdu_awaited(QueuePair& qp, base::Now now) override;
  void endpoint_event(QueuePair& qp, Event event, base::Now now) override;

 private:
  static constexpr uint32_t kInboundLogged = 10;  // lines per second

  // ConnectionOwner
  bool admits_request(Connection& connection, base::Now now) override {
    return requests_.admit(connection, now);
  }
  void request_received(Connection& connection, base::ByteView private_data) override;
  void connection_started(Connection& connection, std::vector<uint8_t> private_data,
                          base::Now now) override;
  void start_failed(Connection& connection, ConnectionState before, framing::StartFailure why,
                    base::ByteView private_data, base::Now now) override;
  void connection_ended(Connection& connection) override;
  void first_fpdu_overdue(Connection& connection) override;
  void left_mpa(const Connection& connection, const QueuePair& qp) override;
  void give_up(Connection& connection) override;
  Status choose_tcp(llp::Stream& stream, const TcpChoice& choice, base::Now now) override;
  void set_start_timer(Connection& connection, base::Now deadline) override;

  // llp::Acceptor
  llp::StreamUser* accept(llp::Stream& stream, const Endpoint& local, const Endpoint& remote,
                          base::Now now) override;
  [[nodiscard]] uint32_t first_room(const Endpoint&) const override {
    return config_.mpa.receive_window;  // tcp.receive_window, which both framings have
  }
  bool make_room(base::Now now) override { return connections_.make_room(now); }

  // ConnectionTable::Leaving
  void leaves(Connection& connection) override;

  template <typename Kind>
  void name_listener(const Connection& connection, Kind& event) const;
  base::Handle make_inbound(const Endpoint& local, ListenerName& name, base::Now now);
  [[nodiscard]] Status no_connection_left() const;
  Status dial(QueuePair& qp, const Endpoint& remote, base::ByteView private_data,
              const ConnectOptions& options, llp::PortClaim claim, bool again, base::Now now);
  Status dial_framed(QueuePair& qp, const Endpoint& remote, base::ByteView private_data,
                     const ConnectOptions& options, llp::PortClaim claim, base::Now now);
  Result<Connection*> start(base::Handle handle, QueuePair& qp, const Endpoint& remote,
                            const Endpoint& source, llp::PortClaim claim, base::Now now);
  Result<Connection*> convert(StreamSocket& socket, framing::Role role, const mpa::Config& config,
                              base::ByteView data, const framing::StartOptions& start_options,
                              base::ByteView last_message, base::Now now);
  template <class Config>
  base::Handle make(framing::Role role, const Config& config, base::ByteView private_data,
                    const framing::StartOptions& start_options, base::Now now);
  bool end_redial(QueuePair& qp);
  void do_reap(base::Now now);
  void reject_unheard(base::Now now);
  void log_start_failure(const Connection& connection, framing::StartFailure why, base::Now now);
  /// Emits the event of an attempt that failed.
  void tell_start_failed(Connection& connection, ConnectionState before, framing::StartFailure why,
                         base::ByteView private_data);

  const DeviceConfig& config_;
  Resources& resources_;
  Consumers& consumers_;
  EventQueue& events_;
  ReservedPorts& reserved_ports_;
  FramingParts& framing_;
  DeviceCounters& counters_;
  base::Doorbells& doorbells_;
  llp::Transport* transport_ = nullptr;
  PortStack* own_ = nullptr;
  ConnectRules rules_;

  Listeners listeners_;
  ConnectionTable connections_;
  PendingRequests requests_;
  QueuePairControl control_;
  std::vector<std::unique_ptr<QueuePair>> orphans_;  // destroyed, waiting for their stream's end
  Redials redials_;                                  // at most one a connection
  base::TimerWheel start_timers_;
  net::RateLimit inbound_logged_;  // start-ups that a peer asked for and spoiled
};

}  // namespace rnic::device

#include "device/connection_report.hpp"

namespace rnic::device {

TransportInfo ConnectionReport::transport_of(const Connection& connection) const {
  const llp::Stream* stream = connection.stream();
  return stream == nullptr ? TransportInfo{} : transport_.describe(*stream, now_);
}

SendLimit ConnectionReport::limit_of(const QueuePair& qp, const Connection& connection,
                                     const TransportInfo& transport) const {
  if (connection.state() != ConnectionState::Running || !connection.may_send()) {
    return SendLimit::Rtr;
  }
  if (!qp.has_unsent()) return SendLimit::Application;
  if (own_ != nullptr && own_->interface.unsent() != 0) return SendLimit::Pool;
  const uint64_t next = transport.in_flight + transport.mss;
  if (transport.peer_window != 0 && next > transport.peer_window) return SendLimit::ReceiverWindow;
  // From our own stack 0 is a closed window; another transport reports 0 when it does not know.
  if (own_ != nullptr && transport.peer_window == 0) return SendLimit::ReceiverWindow;
  return next > transport.cwnd ? SendLimit::Congestion : SendLimit::Application;
}

QueuePairInfo ConnectionReport::info(const QueuePair& qp, const Connection* connection) const {
  QueuePairInfo told;
  told.state = qp.state();
  told.sends_completed = qp.sends_completed();
  told.counters = qp.counters();
  told.waits_for_receive = qp.waits_for_receive();
  told.receive_waits = qp.receive_waits();
  if (connection == nullptr) return told;
  told.connected = true;
  told.local = connection->local();
  told.remote = connection->remote();
  told.facts = connection->agreed();
  told.transport = transport_of(*connection);
  told.mulpdu = connection->mulpdu();
  told.received = connection->received();
  told.limit = limit_of(qp, *connection, told.transport);
  return told;
}

ConnectionSummary ConnectionReport::summary(const Connection& connection) const {
  ConnectionSummary told;
  told.id = {connection.handle().index, connection.handle().generation};
  if (const QueuePair* qp = connection.queue_pair(); qp != nullptr) {
    told.qp = qp->number();
    told.context = qp->context();
    // A queue pair that is destroyed has left its shared receive queue, which may be gone.
    if (const SharedReceiveQueue* srq = qp->spec().srq; srq != nullptr && !qp->orphaned()) {
      told.srq = srq->number();
      told.srq_use = qp->srq_use();
    }
  }
  told.inbound = connection.is_responder();
  told.running = connection.state() == ConnectionState::Running;
  told.local = connection.local();
  told.remote = connection.remote();
  told.idle = transport_of(connection).idle;
  told.received = connection.received();
  return told;
}

}  // namespace rnic::device

#include "device/queue_pair_control.hpp"

#include <string>

#include "base/fail.hpp"

namespace rnic::device {

namespace {

constexpr const char* kDrained = "reset: it was drained, and had not ended within the drain's time";

}  // namespace

Status QueuePairControl::check_unconnected(const QueuePair& qp) const {
  if (qp.spec().send_cq->is_overrun() || qp.spec().receive_cq->is_overrun()) {
    return base::fail(ErrorCode::WrongState,
                      "a completion queue of the queue pair is in error, completions were lost: "
                      "resize it first");
  }
  if (qp.used()) {
    return base::fail(ErrorCode::WrongState,
                      "the queue pair has had its connection: make it Idle by modify() once that "
                      "has ended, or create a new queue pair for another one");
  }
  if (qp.state() == QueuePairState::Idle) return {};
  return base::fail(
      ErrorCode::WrongState,
      "the queue pair was drained, or moved to Error: make it Idle by modify() first");
}

/// Before full operation there is nothing to be sent: the start-up is given up.
Status QueuePairControl::disconnect(QueuePair& qp) {
  Connection* connection = connections_.get(qp.connection());
  const bool streams = connection != nullptr && connection->has_stream();
  if (!streams) {
    if (qp.used()) return {};  // it has ended
    return base::fail(ErrorCode::WrongState,
                      "the queue pair is not connected: connect() or accept() first");
  }
  if (connection->state() == ConnectionState::Running) {
    qp.disconnect();
  } else {
    connection->abort();
  }
  return {};
}

Status QueuePairControl::drain(QueuePair& qp, base::Duration limit, base::Now now) {
  Connection* connection = connections_.get(qp.connection());
  const QueuePairState state = qp.state();
  if (state == QueuePairState::Idle) {
    fail(qp);
    return {};
  }
  if (connection == nullptr) return {};  // everything was flushed, and it has ended
  if (state == QueuePairState::Rts || state == QueuePairState::Closing) qp.disconnect();
  const base::Now end = limit > base::Duration(0) ? base::after(now, limit) : now;
  if (end < connection->drained_by()) connection->arm_drain(drains_, end);
  return {};
}

void QueuePairControl::on_timers(base::Now now) {
  if (!drains_.due(now)) return;
  drains_.expire(now, [this](base::TimerNode& node) {
    const auto& connection = *static_cast<const Connection*>(node.owner);
    if (connection.evicted_for() == nullptr) connections_.evict(connection.handle(), kDrained);
  });
}

/// Posted work is flushed at once, and not only when the transport reports the end.
void QueuePairControl::fail(QueuePair& qp) {
  Connection* connection = connections_.get(qp.connection());
  qp.abort();
  if (connection != nullptr) connection->abort();
}

Status QueuePairControl::check_state(const QueuePair& qp, QueuePairState next) {
  switch (next) {
    case QueuePairState::Error: return {};
    case QueuePairState::Closing:
      if (qp.state() != QueuePairState::Idle || !is_free(qp)) return {};
      return base::fail(ErrorCode::WrongState,
                        "modify: the queue pair is not connected: move it to Error instead");
    case QueuePairState::Idle:
      if (qp.state() == QueuePairState::Idle && !qp.used()) return {};
      if (qp.state() == QueuePairState::Error && is_free(qp)) return {};
      return base::fail(ErrorCode::WrongState,
                        std::string("modify: the queue pair is ") + to_string(qp.state()) +
                            " and its connection has not ended: drain() or disconnect() it, and "
                            "wait for Disconnected");
    case QueuePairState::Rts:
    case QueuePairState::Terminate: break;
  }
  return base::fail(ErrorCode::InvalidArgument,
                    "modify: move a queue pair to Idle, Closing or Error; it becomes Rts by "
                    "connect() or accept(), and Terminate by what its peer does");
}

Status QueuePairControl::check_reads(const QueuePair& qp, const QueuePairChange& change) {
  if (!change.ird && !change.ord) return {};
  const uint32_t most = config_.limits.max_reads;
  if (change.ird.value_or(0) > most || change.ord.value_or(0) > most) {
    return base::fail(ErrorCode::InvalidArgument, "modify: IRD or ORD is above limits.max_reads (" +
                                                      std::to_string(most) + "): raise that");
  }
  const bool idle = qp.state() == QueuePairState::Idle && !qp.used() && !change.state;
  if (idle || change.state == QueuePairState::Idle) return {};
  return base::fail(
      ErrorCode::WrongState,
      "modify: IRD and ORD are changed in Idle and without a connection: move it to Idle, or "
      "lower them for one connection by ConnectOptions");
}

Status QueuePairControl::enter(QueuePair& qp, const QueuePairChange& change) {
  const QueuePairState next = change.state.value_or(QueuePairState::Idle);
  if (next == QueuePairState::Error) {
    fail(qp);
    return {};
  }
  if (next == QueuePairState::Closing) {
    static_cast<void>(disconnect(qp));
    return {};
  }
  return resources_.set_reads(qp, change.ird.value_or(qp.spec().ird),
                              change.ord.value_or(qp.spec().ord));
}

Status QueuePairControl::modify(QueuePair& qp, const QueuePairChange& change) {
  if (change.state) {
    if (auto status = check_state(qp, *change.state); !status) return status;
  }
  if (auto status = check_reads(qp, change); !status) return status;
  // enter() comes first because it may find no memory, or no more Reads for its consumer.
  if (change.state || change.ird || change.ord) {
    if (auto status = enter(qp, change); !status) return status;
  }
  if (change.answer_close) qp.set_answer_close(*change.answer_close);
  if (change.context) qp.set_context(*change.context);
  return {};
}

}  // namespace rnic::device

// Device: streaming connections that become RDMA connections (RFC 5044 s.7.1.3 to s.7.1.5).

#include "device/device.hpp"

namespace rnic::device {

using base::fail;

Result<Connection*> Device::convert(StreamSocket& socket, framing::Role role, base::ByteView data,
                                    const framing::StartWish& wish, base::ByteView last_message,
                                    base::Now now) {
  if (const auto status = socket.can_be_lent(); !status) return tl::unexpected(status.error());
  base::Handle handle;
  if (find_place()) handle = connections_.emplace(*this, role, config_.mpa, data, wish);
  Connection* connection = connections_.get(handle);
  if (connection == nullptr) return tl::unexpected(no_connection_left().error());
  base::Slab<Connection>::Tentative place(connections_, handle);
  connection->handle = handle;
  connection->local = socket.local();
  connection->remote = socket.remote();
  connection->stream = socket.stream();
  connection->socket = &socket;
  connection->session().attach(*socket.stream());
  socket.lend(*connection->mpa_session(), last_message, now);
  place.keep();
  const Status done = own_->stack.set_options(*socket.stream(), default_options(), last_now_);
  RNIC_CHECK(done.has_value());  // what every RDMA connection has
  return connection;
}

Status Device::connect(QueuePair& qp, StreamSocket& socket, base::ByteView private_data,
                       base::Now now, const ConnectOptions& options) {
  if (auto status = check_unconnected(qp); !status) return status;
  if (options.framing == Framing::Tuf) {
    return fail(ErrorCode::Unsupported,
                "a streaming connection becomes an RDMA connection over MPA only (RFC 5044 "
                "s.7.1.3): for ULP framing connect anew");
  }
  if (auto status = check_options(qp, options); !status) return status;
  qp.segments = {options.packing, options.nagle};
  const framing::StartWish wish = make_wish(options, config_.mpa, qp.spec());
  if (auto status = check_request(private_data, wish); !status) return status;
  const auto connection = convert(socket, framing::Role::Initiator, private_data, wish, {}, now);
  if (!connection) return tl::unexpected(connection.error());
  start_timers_.arm((*connection)->start_timer, now + config_.mpa.start_timeout);
  (*connection)->bind(qp);
  return {};
}

Status Device::await_rdma(StreamSocket& socket, base::ByteView last_message, base::Now now) {
  if (pending_requests_ >= config_.limits.max_pending_requests) {
    return fail(ErrorCode::ResourceExhausted,
                "too many connection requests wait: answer them, or raise "
                "limits.max_pending_requests");
  }
  const auto connection = convert(socket, framing::Role::Responder, {}, {}, last_message, now);
  if (!connection) return tl::unexpected(connection.error());
  start_timers_.arm((*connection)->start_timer, now + config_.mpa.start_timeout);
  return {};
}

}  // namespace rnic::device

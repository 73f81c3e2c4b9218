#include "device/stream_socket.hpp"

namespace rnic::device {

using base::fail;

StreamSocket::StreamSocket(const Place<StreamSocket>& place, const StreamSetup&,
                           StreamShared& shared)
    : TcpSocket<StreamKind>(place, shared.rings), shared_(shared) {}

Status StreamSocket::reserve_ring() {
  if (reserve_send()) return {};
  ++shared_.buffer_waits;
  return fail(ErrorCode::ResourceExhausted,
              "no buffer left for another streaming socket: raise limits.stream_octets, or close "
              "sockets");
}

Status StreamSocket::can_be_converted() const {
  const char* reason = nullptr;
  if (!is_established() || how_ended()) {
    reason = "the stream is not open: connect() or accept() one first";
  } else if (switch_.users() != 0) {
    reason = "the stream was converted to RDMA before: use another one";
  } else if ((commands() & (kFinish | kAbort | kRelease)) != 0) {
    reason = "the stream was closed by this side: use another one";
  } else if (peer_has_finished()) {
    reason = "the peer has finished the stream: use another one";
  } else if (readable() != 0 || has_islands()) {
    // RFC 5044 s.7.1.5: octets of the streaming protocol would be taken for MPA's.
    reason = "octets of the peer are unread: receive() them first";
  }
  return reason == nullptr ? Status{} : fail(ErrorCode::WrongState, reason);
}

void StreamSocket::convert_to(mpa::Session& session, base::ByteView last_message, base::Now now) {
  session.take_over(stream()->emss(), received(), last_message, now);
  switch_.begin(*stream(), *this, written() - ByteStream::pending());
  switch_.push(session, written(), received(), now);
  converted_.store(true, std::memory_order_release);
}

void StreamSocket::stream_again(mpa::Session& session, base::Now now) {
  if (!resume(session.received(), session.sent())) {
    ++shared_.buffer_waits;
    return abort();
  }
  switch_.push(*this, session.sent(), session.received(), now);
  session.hand_over_kept(switch_, now);
  converted_.store(false, std::memory_order_release);
  if (commands() != 0) execute(now);
}

llp::InspectVerdict StreamSocket::inspect(base::Range range, base::ByteView octets, base::Now now) {
  const llp::InspectVerdict verdict = ByteStream::inspect(range, octets, now);
  if (verdict == llp::InspectVerdict::Drop && shared_.rings.empty()) ++shared_.buffer_waits;
  return verdict;
}

}  // namespace rnic::device

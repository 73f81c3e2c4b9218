#include "packetdrill/socket_stream.hpp"

#include <algorithm>

namespace rnic::packetdrill {

uint32_t SocketStream::enqueue(base::ByteView octets, bool end_of_record, bool more) {
  const uint32_t room = send_limit > queued() ? send_limit - queued() : 0;
  const auto n = static_cast<uint32_t>(std::min<size_t>(octets.size(), room));
  if (n == 0 || !reserve_send()) return 0;
  const uint32_t taken = put(octets.first(n));
  written_ += taken;
  if (end_of_record && taken == octets.size()) record_ends_.push_back(written_);
  if (!more) more_from_ = written_;
  serve();
  return taken;
}

void SocketStream::push() {
  push_end_ = written_;
  serve();
}

void SocketStream::finish() {
  closing_ = true;
  serve();
  close();
}

void SocketStream::established(uint32_t emss, base::Now now) {
  established_at_ = now;
  ByteStream::established(emss, now);
}

llp::Pulled SocketStream::pull(uint32_t n, uint64_t offset, llp::Frame& out, base::Now now) {
  const uint32_t full = stream()->emss();
  while (!record_ends_.empty() && record_ends_.front() <= offset) {
    // Nothing joins a segment behind the end of a record.
    if (n < full) return {};
    record_ends_.pop_front();
  }
  uint64_t length = std::min<uint64_t>(n, unsent());
  bool end_of_record = false;
  if (!record_ends_.empty() && record_ends_.front() <= offset + length) {
    length = record_ends_.front() - offset;
    end_of_record = true;
  }
  const bool is_short = full - n + length < full;
  if (is_short && corked && !end_of_record && !closing_ && !pushed()) return {};
  llp::Pulled pulled = ByteStream::pull(static_cast<uint32_t>(length), offset, out, now);
  if (offset + pulled.length > more_from_) pulled.push = false;
  return pulled;
}

uint32_t SocketStream::pending() const {
  // A record that was ended is not to grow: Nagle's rule has nothing to wait for.
  return record_ends_.empty() ? ByteStream::pending() : UINT32_MAX;
}

void SocketStream::released(const llp::RecordTag& tag, uint64_t end_offset) {
  ByteStream::released(tag, end_offset);
  if (unsent() != 0 && stream() != nullptr) stream()->ready();  // may have been held by a cork
}

llp::InspectVerdict SocketStream::inspect(base::Range range, base::ByteView octets, base::Now now) {
  // The window of a SYN is offered before the socket is known: it may be larger than the limit.
  const uint64_t most = std::max(receive_limit, 65535u);
  if (range.end - (received_ - readable()) > most) return llp::InspectVerdict::Drop;
  return ByteStream::inspect(range, octets, now);
}

void SocketStream::place(base::Range range, base::ByteView octets, bool in_order, base::Now now) {
  last_received_ = now;
  ByteStream::place(range, octets, in_order, now);
}

void SocketStream::ordered(uint64_t offset, base::Now now) {
  received_ = offset;
  ByteStream::ordered(offset, now);
}

uint32_t SocketStream::receive_room() const {
  const uint32_t waiting = readable();
  return std::min(ByteStream::receive_room(),
                  receive_limit > waiting ? receive_limit - waiting : 0);
}

}  // namespace rnic::packetdrill

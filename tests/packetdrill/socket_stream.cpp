#include "packetdrill/socket_stream.hpp"

#include <algorithm>

#include "base/check.hpp"

namespace rnic::packetdrill {

uint32_t SocketStream::write(base::ByteView octets, bool end_of_record, bool more) {
  const uint32_t room = send_limit > queued() ? send_limit - queued() : 0;
  const auto n = static_cast<uint32_t>(std::min<size_t>(octets.size(), room));
  if (n == 0) return 0;
  send_.insert(send_.end(), octets.begin(), octets.begin() + n);
  written_ += n;
  if (!more) marks_.push_back({written_, end_of_record && n == octets.size()});
  if (stream_ != nullptr) stream_->ready();
  return n;
}

uint32_t SocketStream::read(base::ByteSpan out, bool peek) {
  const auto n = static_cast<uint32_t>(std::min<size_t>(out.size(), readable()));
  std::copy_n(receive_.begin(), n, out.begin());
  if (peek || n == 0) return n;
  receive_.erase(receive_.begin(), receive_.begin() + n);
  read_ += n;
  if (stream_ != nullptr) stream_->room_grew();
  return n;
}

void SocketStream::push() {
  push_end_ = written_;
  if (stream_ != nullptr && unsent() != 0) stream_->ready();
}

void SocketStream::close() {
  closing_ = true;
  if (stream_ == nullptr) return;
  if (unsent() != 0) stream_->ready();
  stream_->close();
}

void SocketStream::abort() {
  if (stream_ != nullptr) stream_->abort();
}

void SocketStream::established(uint32_t, base::Now now) {
  established_ = true;
  established_at_ = now;
  if (unsent() != 0 && stream_ != nullptr) stream_->ready();
}

bool SocketStream::short_segment_waits() const {
  if (closing_ || pushed()) return false;
  // RFC 9293 s.3.7.4, in the form that lets one short segment go while only full ones are out.
  return corked || (nagle && short_end_ > released_);
}

llp::Pulled SocketStream::pull(uint32_t n, uint64_t offset, llp::Frame& out) {
  RNIC_CHECK(offset == pulled_);
  const uint32_t full = stream_->emss();
  while (!marks_.empty() && marks_.front().offset <= pulled_) {
    // Nothing joins a segment behind the end of a record.
    if (marks_.front().end_of_record && n < full) return {};
    marks_.pop_front();
  }
  uint64_t end = std::min<uint64_t>(written_, pulled_ + n);
  bool end_of_record = false;
  for (const Mark& mark : marks_) {
    if (mark.offset > end) break;
    if (!mark.end_of_record) continue;
    end = mark.offset;
    end_of_record = true;
    break;
  }
  const auto length = static_cast<uint32_t>(end - pulled_);
  if (length == 0) return {};
  const bool is_short = full - n + length < full;
  if (is_short && !end_of_record && short_segment_waits()) return {};
  const bool push = std::any_of(marks_.begin(), marks_.end(), [&](const Mark& mark) {
    return mark.offset > pulled_ && mark.offset <= end;
  });
  std::copy_n(send_.begin() + static_cast<ptrdiff_t>(pulled_ - released_), length,
              out.append(length));
  pulled_ = end;
  if (is_short) short_end_ = end;
  return {.length = length, .push = push, .atomic = false, .tag = {}};
}

bool SocketStream::rebuild(const llp::RecordTag&, uint64_t offset, uint32_t length,
                           llp::Frame& out) {
  RNIC_CHECK(offset >= released_ && offset + length <= pulled_);
  std::copy_n(send_.begin() + static_cast<ptrdiff_t>(offset - released_), length,
              out.append(length));
  return true;
}

void SocketStream::released(const llp::RecordTag&, uint64_t end_offset) {
  send_.erase(send_.begin(), send_.begin() + static_cast<ptrdiff_t>(end_offset - released_));
  released_ = end_offset;
  if (unsent() != 0 && stream_ != nullptr) stream_->ready();
}

llp::InspectVerdict SocketStream::inspect(base::Range range, base::ByteView, base::Now) {
  // The window of a SYN is offered before the socket is known: it may be larger than the limit.
  const uint64_t most = std::max(receive_limit, 65535u);
  return range.end - read_ <= most ? llp::InspectVerdict::Accept : llp::InspectVerdict::Drop;
}

void SocketStream::place(base::Range range, base::ByteView octets, bool, base::Now now) {
  last_received_ = now;
  if (refuse_octets) {
    abort();  // RFC 9293 s.3.6.1 (SHLD-3)
    return;
  }
  const uint64_t end = range.end - read_;
  if (receive_.size() < end) receive_.resize(end);
  std::copy(octets.begin(), octets.end(),
            receive_.begin() + static_cast<ptrdiff_t>(range.begin - read_));
}

void SocketStream::ordered(uint64_t offset, base::Now) { ordered_ = offset; }

uint32_t SocketStream::receive_room() const {
  return receive_limit > readable() ? receive_limit - readable() : 0;
}

void SocketStream::ended(llp::StreamEnd how, base::Now) {
  ended_ = how;
  stream_ = nullptr;
}

}  // namespace rnic::packetdrill

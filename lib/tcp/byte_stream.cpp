#include "tcp/byte_stream.hpp"

#include <algorithm>

#include "base/check.hpp"

namespace rnic::tcp {

ByteStream::ByteStream(RingPool& pool) : pool_(pool) {}

ByteStream::ByteStream(uint32_t ring_octets)
    : own_pool_(std::make_unique<RingPool>(ring_octets, 2)), pool_(*own_pool_) {}

ByteStream::~ByteStream() {
  if (send_ != nullptr) pool_.give(send_);
  if (receive_ != nullptr) pool_.give(receive_);
}

uint32_t ByteStream::put(base::ByteView octets) {
  const auto n = static_cast<uint32_t>(std::min<size_t>(octets.size(), writable()));
  if (n == 0) return 0;
  const uint64_t written = written_.load(std::memory_order_relaxed);
  ring(send_).write(written, octets.first(n));
  written_.store(written + n, std::memory_order_release);
  return n;
}

uint32_t ByteStream::peek(base::ByteSpan out) const {
  const auto n = static_cast<uint32_t>(std::min<size_t>(out.size(), readable()));
  if (n != 0) ring(receive_).read(read_.load(std::memory_order_relaxed), out.first(n));
  return n;
}

uint32_t ByteStream::take(base::ByteSpan out) {
  const uint32_t n = peek(out);
  if (n != 0) read_.store(read_.load(std::memory_order_relaxed) + n, std::memory_order_release);
  return n;
}

bool ByteStream::room_is_news() const {
  const uint64_t read = read_.load(std::memory_order_relaxed);
  const uint64_t told = told_.load(std::memory_order_relaxed);
  if (read == told) return false;
  // The owner is told when an eighth of the ring has become free, and when the ring is empty, since
  // the peer may then be waiting for the window to open.
  return read - told >= ring_octets() / 8 || read == ordered_.load(std::memory_order_relaxed);
}

bool ByteStream::reserve_send() {
  if (send_ == nullptr) send_ = pool_.take();
  return send_ != nullptr;
}

void ByteStream::serve() {
  if (stream_ == nullptr) return;
  if (written_.load(std::memory_order_acquire) != pulled_) stream_->ready();
  const uint64_t read = read_.load(std::memory_order_acquire);
  if (read != told_.load(std::memory_order_relaxed)) {
    told_.store(read, std::memory_order_relaxed);
    stream_->room_grew();
  }
}

uint32_t ByteStream::write(base::ByteView octets) {
  if (!reserve_send()) return 0;
  const uint32_t n = put(octets);
  if (n != 0) serve();
  return n;
}

uint32_t ByteStream::read(base::ByteSpan out) {
  const uint32_t n = take(out);
  if (n != 0) serve();
  return n;
}

void ByteStream::established(uint32_t, base::Now) {
  peer_half_.set(llp::PeerHalf::Open);
  serve();
}

llp::Pulled ByteStream::pull(uint32_t n, uint64_t offset, llp::Frame& out, base::Now) {
  RNIC_CHECK(offset == pulled_);
  const uint64_t written = written_.load(std::memory_order_acquire);
  const auto length = static_cast<uint32_t>(std::min<uint64_t>(n, written - pulled_));
  if (length == 0) return {};
  ring(send_).read(offset, {out.append(length), length});
  pulled_ += length;
  return {.length = length, .push = pulled_ == written, .atomic = false, .tag = {}};
}

bool ByteStream::rebuild(const llp::RecordTag&, uint64_t offset, uint32_t length, llp::Frame& out) {
  RNIC_CHECK(offset >= released_.load(std::memory_order_relaxed) && offset + length <= pulled_);
  ring(send_).read(offset, {out.append(length), length});
  return true;
}

void ByteStream::released(const llp::RecordTag&, uint64_t end_offset) {
  released_.store(end_offset, std::memory_order_release);
}

llp::InspectVerdict ByteStream::inspect(base::Range range, base::ByteView, base::Now) {
  if (receive_ == nullptr) receive_ = pool_.take();
  // No ring is left: windows were offered to more streams than the pool has rings for. The peer
  // will retransmit the segment.
  if (receive_ == nullptr) return llp::InspectVerdict::Drop;
  // A window offered before this user was known may be larger than the ring.
  return fits(range) ? llp::InspectVerdict::Accept : llp::InspectVerdict::Drop;
}

void ByteStream::place(base::Range range, base::ByteView octets, bool, base::Now) {
  ring(receive_).write(range.begin, octets);
  placed_end_ = std::max(placed_end_, range.end);
}

void ByteStream::ordered(uint64_t offset, base::Now) {
  ordered_.store(offset, std::memory_order_release);
}

uint32_t ByteStream::receive_room() const {
  if (receive_ == nullptr && pool_.empty()) return 0;
  return ring_octets() - static_cast<uint32_t>(ordered_.load(std::memory_order_relaxed) -
                                               read_.load(std::memory_order_acquire));
}

void ByteStream::peer_finished(base::Now) { peer_half_.set(llp::PeerHalf::Finished); }

bool ByteStream::resume(uint64_t received, uint64_t sent) {
  if (receive_ == nullptr) receive_ = pool_.take();
  // Octets that are not acknowledged stay in the ring: rebuild() may ask for them.
  if (released_.load(std::memory_order_relaxed) == pulled_) {
    released_.store(sent, std::memory_order_relaxed);
  }
  pulled_ = sent;
  written_.store(sent, std::memory_order_relaxed);
  placed_end_ = std::max(placed_end_, received);
  told_.store(received, std::memory_order_relaxed);
  read_.store(received, std::memory_order_relaxed);
  ordered_.store(received, std::memory_order_release);
  return receive_ != nullptr;
}

void ByteStream::validate() const {
  const uint64_t released = released_.load(std::memory_order_relaxed);
  const uint64_t written = written_.load(std::memory_order_acquire);
  RNIC_CHECK(released <= pulled_ && pulled_ <= written);
  RNIC_CHECK(written - released <= (send_ != nullptr ? ring_octets() : 0));
  const uint64_t ordered = ordered_.load(std::memory_order_relaxed);
  const uint64_t read = read_.load(std::memory_order_acquire);
  RNIC_CHECK(told_.load(std::memory_order_relaxed) <= read && read <= ordered);
  RNIC_CHECK(ordered <= placed_end_);
  RNIC_CHECK(placed_end_ - read <= (receive_ != nullptr ? ring_octets() : 0));
  RNIC_CHECK(stream_ == nullptr || !how_ended());
}

void ByteStream::ended(StreamEnd how, base::Now) {
  stream_ = nullptr;
  end_.set(how);
}

}  // namespace rnic::tcp

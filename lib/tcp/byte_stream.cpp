#include "tcp/byte_stream.hpp"

#include <algorithm>
#include <cstring>

#include "base/check.hpp"

namespace rnic::tcp {

namespace {

void copy_in(std::vector<uint8_t>& ring, uint64_t offset, base::ByteView octets) {
  const size_t at = offset % ring.size();
  const size_t first = std::min(octets.size(), ring.size() - at);
  std::memcpy(&ring[at], octets.data(), first);
  if (first != octets.size())
    std::memcpy(ring.data(), octets.data() + first, octets.size() - first);
}

void copy_out(const std::vector<uint8_t>& ring, uint64_t offset, base::ByteSpan out) {
  const size_t at = offset % ring.size();
  const size_t first = std::min(out.size(), ring.size() - at);
  std::memcpy(out.data(), &ring[at], first);
  if (first != out.size()) std::memcpy(out.data() + first, ring.data(), out.size() - first);
}

}  // namespace

ByteStream::ByteStream(uint32_t send_octets, uint32_t receive_octets)
    : send_(std::max(send_octets, 1u)), receive_(std::max(receive_octets, 1u)) {}

uint32_t ByteStream::write(base::ByteView octets) {
  const auto n = static_cast<uint32_t>(std::min<size_t>(octets.size(), writable()));
  if (n == 0) return 0;
  copy_in(send_, written_, octets.first(n));
  written_ += n;
  if (stream_ != nullptr) stream_->ready();
  return n;
}

uint32_t ByteStream::read(base::ByteSpan out) {
  const auto n = static_cast<uint32_t>(std::min<size_t>(out.size(), readable()));
  if (n == 0) return 0;
  copy_out(receive_, read_, out.first(n));
  read_ += n;
  if (stream_ != nullptr) stream_->room_grew();
  return n;
}

void ByteStream::established(uint32_t, base::Now) {
  established_ = true;
  if (written_ != pulled_ && stream_ != nullptr) stream_->ready();
}

llp::Pulled ByteStream::pull(uint32_t n, uint64_t offset, llp::Frame& out) {
  RNIC_CHECK(offset == pulled_);
  const auto length = static_cast<uint32_t>(std::min<uint64_t>(n, written_ - pulled_));
  if (length == 0) return {};
  copy_out(send_, offset, {out.append(length), length});
  pulled_ += length;
  return {.length = length, .push = pulled_ == written_, .atomic = false, .tag = {}};
}

bool ByteStream::rebuild(const llp::RecordTag&, uint64_t offset, uint32_t length, llp::Frame& out) {
  RNIC_CHECK(offset >= released_ && offset + length <= pulled_);
  copy_out(send_, offset, {out.append(length), length});
  return true;
}

void ByteStream::released(const llp::RecordTag&, uint64_t end_offset) { released_ = end_offset; }

llp::InspectVerdict ByteStream::inspect(base::Range range, base::ByteView, base::Now) {
  // A window offered before this user was known may be larger than the ring.
  return range.end - read_ <= receive_.size() ? llp::InspectVerdict::Accept
                                              : llp::InspectVerdict::Drop;
}

void ByteStream::place(base::Range range, base::ByteView octets, bool, base::Now) {
  copy_in(receive_, range.begin, octets);
}

void ByteStream::ordered(uint64_t offset, base::Now) { ordered_ = offset; }

uint32_t ByteStream::receive_room() const {
  return static_cast<uint32_t>(receive_.size() - (ordered_ - read_));
}

void ByteStream::peer_finished(base::Now) { peer_finished_ = true; }

void ByteStream::ended(llp::StreamEnd how, base::Now) {
  ended_ = how;
  stream_ = nullptr;
}

}  // namespace rnic::tcp

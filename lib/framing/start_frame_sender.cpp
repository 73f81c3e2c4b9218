#include "framing/start_frame_sender.hpp"

#include <algorithm>
#include <cstring>
#include <utility>

#include "base/check.hpp"

namespace rnic::framing {

void StartFrameSender::set(std::vector<uint8_t> octets) {
  frame_ = std::move(octets);
  size_ = static_cast<uint32_t>(frame_.size());
  sent_ = 0;
}

uint32_t StartFrameSender::emit(uint32_t n, uint64_t offset, llp::Frame& out) {
  if (sent_ == 0) base_ = offset;
  const uint32_t length = std::min({n, size_ - sent_, out.room_left()});
  if (length == 0) return 0;
  std::memcpy(out.append(length), frame_.data() + sent_, length);
  sent_ += length;
  return length;
}

bool StartFrameSender::rebuild(uint64_t offset, uint32_t length, llp::Frame& out) const {
  if (offset < base_ || offset - base_ + length > frame_.size()) return false;
  std::memcpy(out.append(length), frame_.data() + (offset - base_), length);
  return true;
}

void StartFrameSender::validate() const {
  RNIC_CHECK(sent_ <= size_ && (frame_.size() == size_ || (frame_.empty() && !pending())));
}

void StartFrameSender::acknowledged(uint64_t end_offset) {
  if (pending() || end_offset < this->end_offset()) return;
  frame_ = {};
}

}  // namespace rnic::framing

#include "local/frame_pool.hpp"

#include "base/check.hpp"

namespace rnic::local {

FramePool::FramePool(uint32_t buffers, uint32_t octets)
    : octets_(octets), memory_(size_t{buffers} * octets), is_used_(buffers) {
  unused_.reserve(buffers);
  for (uint32_t i = buffers; i-- > 0;) unused_.push_back(i);
}

bool FramePool::take(std::span<port::Packet> out) {
  if (unused_.size() < out.size()) return false;
  for (port::Packet& packet : out) {
    const uint32_t index = unused_.back();
    unused_.pop_back();
    is_used_[index] = true;
    packet = {};
    packet.data = memory_.data() + size_t{octets_} * index;
    packet.room = octets_;
    packet.buffer = reinterpret_cast<port::Buffer*>(packet.data);
  }
  return true;
}

uint32_t FramePool::index_of(const port::Packet& packet) const {
  const auto offset = reinterpret_cast<const uint8_t*>(packet.buffer) - memory_.data();
  return static_cast<uint32_t>(static_cast<size_t>(offset) / octets_);
}

void FramePool::give_back(std::span<const port::Packet> packets) {
  for (const port::Packet& packet : packets) {
    const uint32_t index = index_of(packet);
    RNIC_CHECK(index < is_used_.size() && is_used_[index]);  // freed twice, or never taken
    is_used_[index] = false;
    unused_.push_back(index);
  }
}

}  // namespace rnic::local

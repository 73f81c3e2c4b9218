/// \file
/// OctetRing: the octets of a stream by their offset, in memory that has room for a part of it.
#pragma once

#include <algorithm>
#include <cstdint>
#include <cstring>

#include "base/bytes.hpp"

namespace rnic::base {

/// Octet `offset` of a stream lies at `offset` modulo the size of the ring. Which octets are valid
/// is known to the user: it neither overwrites what is still needed nor reads what is not there.
class OctetRing {
 public:
  /// \param memory of somebody else's, `size` octets that outlive the ring
  OctetRing(uint8_t* memory, uint32_t size) : memory_(memory), size_(size) {}

  [[nodiscard]] uint32_t size() const { return size_; }

  /// \param octets at most size()
  void write(uint64_t offset, ByteView octets) {
    const size_t at = offset % size_;
    const size_t first = std::min(octets.size(), size_ - at);
    std::memcpy(memory_ + at, octets.data(), first);
    if (first != octets.size()) {
      std::memcpy(memory_, octets.data() + first, octets.size() - first);
    }
  }
  /// \param out at most size()
  void read(uint64_t offset, ByteSpan out) const {
    const size_t at = offset % size_;
    const size_t first = std::min(out.size(), size_ - at);
    std::memcpy(out.data(), memory_ + at, first);
    if (first != out.size()) std::memcpy(out.data() + first, memory_, out.size() - first);
  }

 private:
  uint8_t* memory_;
  uint32_t size_;  // > 0
};

}  // namespace rnic::base

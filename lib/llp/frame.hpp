/// \file
/// The part of an outgoing frame that a record is written into.
#pragma once

#include <cstdint>

#include "base/bytes.hpp"
#include "base/check.hpp"

namespace rnic::llp {

/// Writable room inside the frame being built. The octets of a record are appended in stream order
/// and go on the wire as they are.
class Frame {
 public:
  Frame(uint8_t* begin, uint32_t room) : begin_(begin), room_(room) {}

  /// Extends the record by n octets and returns where to write them. n <= room_left().
  uint8_t* append(uint32_t n) {
    RNIC_DCHECK(n <= room_left());
    uint8_t* at = begin_ + length_;
    length_ += n;
    return at;
  }

  [[nodiscard]] uint32_t length() const { return length_; }
  [[nodiscard]] uint32_t room_left() const { return room_ - length_; }
  [[nodiscard]] base::ByteView written() const { return {begin_, length_}; }

 private:
  uint8_t* begin_;
  uint32_t room_;
  uint32_t length_ = 0;  // Invariant: <= room_
};

}  // namespace rnic::llp

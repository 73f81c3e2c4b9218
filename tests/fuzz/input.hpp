/// \file
/// The octets of a fuzzer's input, read one choice after another.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>

#include "base/bytes.hpp"

namespace rnic::fuzz {

/// What was read to its end gives zeros.
class Input {
 public:
  Input(const uint8_t* data, size_t size) : left_(data, size) {}

  [[nodiscard]] bool empty() const { return left_.empty(); }
  uint8_t octet() {
    if (left_.empty()) return 0;
    const uint8_t value = left_[0];
    left_ = left_.subspan(1);
    return value;
  }
  uint16_t number() {
    const auto high = static_cast<uint16_t>(octet() << 8);
    return static_cast<uint16_t>(high | octet());
  }
  /// Up to `most` of the next octets.
  base::ByteView octets(size_t most) {
    const base::ByteView taken = left_.subspan(0, std::min(most, left_.size()));
    left_ = left_.subspan(taken.size());
    return taken;
  }

 private:
  base::ByteView left_;
};

/// What must not happen, happened.
inline void demand(bool holds) {
  if (!holds) __builtin_trap();
}

}  // namespace rnic::fuzz

/// \file
/// Tells whether each octet of a message has come exactly once.
#pragma once

#include <cstdint>

namespace rnic::ddp {

/// Segments may come in any order (RFC 5041 s.5.3), so neither their number nor the sum of their
/// lengths tells that nothing was left out. A Coverage keeps a few words, however many gaps there
/// are.
///
/// `next_` follows segments that continue each other. Each other segment [a, b) adds
/// mix(b) - mix(a) to a sum, which telescopes along a chain of segments: the sum is that of one
/// segment [0, length) when the segments cover [0, length) once, and otherwise only by a chance of
/// one in 2^64, since `mix` depends on a key that the peer does not know.
class Coverage {
 public:
  /// Octets [from, from + length) have come.
  void add(uint64_t from, uint32_t length, uint64_t key) {
    octets_ += length;
    if (from == next_) {
      next_ += length;
    } else {
      sum_ += mix(from + length, key) - mix(from, key);
    }
  }
  /// \return whether every octet of [0, length) has come once, and no other octet
  [[nodiscard]] bool exactly(uint64_t length, uint64_t key) const {
    if (octets_ != length) return false;
    return sum_ == 0 ? next_ == length : sum_ + mix(next_, key) == mix(length, key);
  }
  /// Sum of the lengths.
  [[nodiscard]] uint64_t octets() const { return octets_; }

 private:
  /// A permutation of the 64-bit numbers (splitmix64's finaliser).
  [[nodiscard]] static constexpr uint64_t mix(uint64_t offset, uint64_t key) {
    uint64_t z = offset + key;
    z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9ull;
    z = (z ^ z >> 27) * 0x94d049bb133111ebull;
    return z ^ z >> 31;
  }

  uint64_t octets_ = 0;
  uint64_t next_ = 0;  // end of the octets that came one after the other from 0 on
  uint64_t sum_ = 0;   // of all other segments
};

}  // namespace rnic::ddp

/// \file
/// Octet views. Wire octets are `uint8_t`; a view never owns.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

namespace rnic::base {

/// Read-only octets owned by somebody else; valid as long as the owner says.
using ByteView = std::span<const uint8_t>;
/// Writable octets owned by somebody else.
using ByteSpan = std::span<uint8_t>;

/// Half-open interval `[begin, end)` of octet offsets in a stream that never wraps (64 bits).
struct Range {
  uint64_t begin = 0;
  uint64_t end = 0;

  [[nodiscard]] constexpr uint64_t size() const { return end - begin; }
  [[nodiscard]] constexpr bool empty() const { return begin >= end; }
  [[nodiscard]] constexpr bool contains(uint64_t offset) const {
    return begin <= offset && offset < end;
  }
  friend constexpr bool operator==(const Range&, const Range&) = default;
};

}  // namespace rnic::base

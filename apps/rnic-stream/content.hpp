/// \file
/// The octets that rnic-stream sends: any position of any stream can be checked, also by a peer
/// that is another program.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

namespace rnic::stream {

/// Which way, seen from the client.
enum class Way : uint8_t { Up = 0, Down = 1 };

/// A block of 65521 octets, repeated. Octet i of the block is the top octet of x[i], where
/// x[i] = x[i-1] * 6364136223846793005 + 1442695040888963407 modulo 2^64 and x[-1] = 1. A stream
/// begins at octet (client's port * 7919 + way * 32749) modulo 65521, so that no two streams of a
/// test are alike.
class Content {
 public:
  Content(uint16_t client_port, Way way);

  /// Up to `n` octets of the stream from `offset`; at least one block's worth when n is larger.
  [[nodiscard]] std::span<const uint8_t> at(uint64_t offset, uint64_t n) const;
  /// The offset in the stream of the first octet that differs.
  [[nodiscard]] std::optional<uint64_t> first_difference(uint64_t offset,
                                                         std::span<const uint8_t> octets) const;

  static constexpr uint32_t kBlock = 65521;

 private:
  uint32_t begin_;
};

/// CRC-32 (ISO 3309, as in zlib) of a stream as it passes.
class RunningHash {
 public:
  void add(std::span<const uint8_t> octets);
  [[nodiscard]] uint32_t value() const { return ~state_; }

 private:
  uint32_t state_ = 0xffffffff;
};

/// Eight lower-case digits, as the reports show a hash.
[[nodiscard]] std::string hex(uint32_t value);

}  // namespace rnic::stream

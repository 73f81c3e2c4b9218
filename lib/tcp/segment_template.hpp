/// \file
/// SegmentTemplate: the header of the first segment of a burst, from which the others are made.
#pragma once

#include <array>
#include <cstdint>
#include <cstring>

#include "base/check.hpp"
#include "base/endian.hpp"
#include "base/seq32.hpp"
#include "wire/tcp.hpp"
#include "wire/tcp_options.hpp"

namespace rnic::tcp {

/// The segments that one call of output() sends for a connection differ in their sequence number
/// and flags only: ACK, window and timestamps are those of the same moment.
class SegmentTemplate {
 public:
  SegmentTemplate() {}  // NOLINT(modernize-use-equals-default): the octets stay as they are

  /// No header was learnt yet.
  [[nodiscard]] bool empty() const { return length_ == 0; }
  /// Octets of the header; 0: empty().
  [[nodiscard]] uint32_t length() const { return length_; }
  /// \param header `length` octets, whose checksum is still 0
  void learn(const uint8_t* header, uint32_t length) {
    RNIC_DCHECK(length == kShort || length == kLong);
    std::memcpy(octets_.data(), header, length);
    length_ = length;
  }
  /// Writes the header of another segment. !empty().
  void write(uint8_t* header, base::Seq32 sequence, uint8_t flags) const {
    // Copies of known sizes are a few instructions, without a call.
    std::memcpy(header, octets_.data(), kShort);
    if (length_ == kLong) std::memcpy(header + kShort, octets_.data() + kShort, kLong - kShort);
    base::store_be32(header + wire::kTcpSequenceAt, sequence.value);
    header[wire::kTcpFlagsAt] = flags;
  }

 private:
  static constexpr uint32_t kShort = wire::kTcpHeaderMin;
  static constexpr uint32_t kLong = wire::kTcpHeaderMin + wire::kTcpTimestampsPadded;

  uint32_t length_ = 0;
  std::array<uint8_t, kLong> octets_;  // the first length_ of them
};

}  // namespace rnic::tcp

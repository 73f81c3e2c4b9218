/// \file
/// The TCP header (RFC 9293 s.3.1): checked view with named offsets, and the writer.
#pragma once

#include <cstdint>
#include <optional>

#include "base/bytes.hpp"
#include "base/endian.hpp"
#include "base/seq32.hpp"
#include "wire/ip_protocol.hpp"

namespace rnic::wire {

inline constexpr uint32_t kTcpHeaderMin = 20;
inline constexpr uint32_t kTcpHeaderMax = 60;

inline constexpr uint32_t kTcpSourcePortAt = 0;
inline constexpr uint32_t kTcpDestinationPortAt = 2;
inline constexpr uint32_t kTcpSequenceAt = 4;
inline constexpr uint32_t kTcpAcknowledgmentAt = 8;
inline constexpr uint32_t kTcpDataOffsetAt = 12;
inline constexpr uint32_t kTcpFlagsAt = 13;
inline constexpr uint32_t kTcpWindowAt = 14;
inline constexpr uint32_t kTcpChecksumAt = 16;
inline constexpr uint32_t kTcpUrgentPointerAt = 18;
inline constexpr uint32_t kTcpOptionsAt = 20;

namespace tcp_flag {
inline constexpr uint8_t kFin = 0x01;
inline constexpr uint8_t kSyn = 0x02;
inline constexpr uint8_t kRst = 0x04;
inline constexpr uint8_t kPsh = 0x08;
inline constexpr uint8_t kAck = 0x10;
inline constexpr uint8_t kUrg = 0x20;
inline constexpr uint8_t kEce = 0x40;  ///< ECN-Echo (RFC 3168 s.6.1)
inline constexpr uint8_t kCwr = 0x80;  ///< congestion window reduced
}  // namespace tcp_flag

/// A TCP segment whose header length has been checked against the octets that are there.
class TcpView {
 public:
  /// nullopt: the segment is shorter than its header says, or the data offset is below 5.
  [[nodiscard]] static std::optional<TcpView> parse(base::ByteView segment) {
    if (segment.size() < kTcpHeaderMin) return std::nullopt;
    const uint32_t header = (segment[kTcpDataOffsetAt] >> 4) * 4u;
    if (header < kTcpHeaderMin || header > segment.size()) return std::nullopt;
    return TcpView(segment, header);
  }

  [[nodiscard]] uint16_t source_port() const { return be16(kTcpSourcePortAt); }
  [[nodiscard]] uint16_t destination_port() const { return be16(kTcpDestinationPortAt); }
  [[nodiscard]] base::Seq32 sequence() const { return base::Seq32(be32(kTcpSequenceAt)); }
  [[nodiscard]] base::Seq32 acknowledgment() const {
    return base::Seq32(be32(kTcpAcknowledgmentAt));
  }
  [[nodiscard]] uint8_t flags() const { return segment_[kTcpFlagsAt]; }
  [[nodiscard]] bool has(uint8_t flag) const { return (flags() & flag) != 0; }
  [[nodiscard]] uint16_t window() const { return be16(kTcpWindowAt); }
  /// The urgent pointer, counted from the sequence number. It has a meaning only if URG is set.
  [[nodiscard]] uint16_t urgent_pointer() const { return be16(kTcpUrgentPointerAt); }
  [[nodiscard]] uint16_t checksum() const { return be16(kTcpChecksumAt); }
  [[nodiscard]] uint32_t header_length() const { return header_; }
  [[nodiscard]] base::ByteView options() const {
    return segment_.subspan(kTcpHeaderMin, header_ - kTcpHeaderMin);
  }
  [[nodiscard]] base::ByteView payload() const { return segment_.subspan(header_); }

 private:
  TcpView(base::ByteView segment, uint32_t header) : segment_(segment), header_(header) {}
  [[nodiscard]] uint16_t be16(uint32_t at) const { return base::load_be16(&segment_[at]); }
  [[nodiscard]] uint32_t be32(uint32_t at) const { return base::load_be32(&segment_[at]); }

  base::ByteView segment_;
  uint32_t header_;  // Invariant: 20 <= header_ <= segment_.size()
};

/// The fields of a header to be written.
struct TcpHeader {
  uint16_t source_port = 0;
  uint16_t destination_port = 0;
  base::Seq32 sequence;
  base::Seq32 acknowledgment;
  uint8_t flags = 0;
  uint16_t window = 0;
  uint32_t header_length = kTcpHeaderMin;  ///< with options; a multiple of 4, 20..60
};

/// Writes the 20 fixed octets; reserved bits, checksum and urgent pointer are 0. The caller writes
/// the options behind them.
inline void write_tcp(uint8_t* p, const TcpHeader& header) {
  base::store_be16(p + kTcpSourcePortAt, header.source_port);
  base::store_be16(p + kTcpDestinationPortAt, header.destination_port);
  base::store_be32(p + kTcpSequenceAt, header.sequence.value);
  base::store_be32(p + kTcpAcknowledgmentAt, header.acknowledgment.value);
  p[kTcpDataOffsetAt] = static_cast<uint8_t>(header.header_length / 4 << 4);
  p[kTcpFlagsAt] = header.flags;
  base::store_be16(p + kTcpWindowAt, header.window);
  base::store_be16(p + kTcpChecksumAt, 0);
  base::store_be16(p + kTcpUrgentPointerAt, 0);
}

}  // namespace rnic::wire
